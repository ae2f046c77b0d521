"""One entry of the wanted table, and how it is read from what an editor sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rankscope.hub.conditions import Condition, bad_condition, exception_names, log_message
from rankscope.ranks import RankFacts

if TYPE_CHECKING:
    from rankscope.hub.member import Member

LINE, FUNCTION, EXCEPTION = "line", "function", "exception"
_FILTERS = ("raised", "uncaught", "userUnhandled")


@dataclass(frozen=True)
class Breakpoint:
    """One entry of the table. ``where`` is a client path, a function's name, or an exception filter.

    ``request`` are the fields as the editor sent them; with ``error`` it is in the table
    but no member ever hears of it. ``only``: it is for these members, each until its next stop (run to cursor).
    """

    id: int
    kind: str
    where: str
    request: dict[str, Any]
    condition: Condition = field(default_factory=Condition)
    log: str | None = None
    names: tuple[str, ...] = ()
    error: str = ""
    only: set[str] | None = None

    @property
    def line(self) -> int:
        """The line asked for; 0 where there is none."""
        return int(self.request.get("line", 0))

    def concerns(self, member: Member) -> bool:
        """Whether it may stop that member, as far as is known."""
        if self.error or member.is_greyed or member.facts.role == "idle":
            return False
        if self.only is not None:
            return member.id in self.only
        return self.may_stop(member.facts)

    def may_stop(self, facts: RankFacts) -> bool:
        """Whether its rank set has room for such a process."""
        return self.condition.ranks is None or self.condition.ranks.contains(facts) is not False

    @property
    def arms(self) -> bool:
        """Whether it needs the debugger by itself; the agents' own hooks see uncaught exceptions."""
        return not self.error and not (self.kind == EXCEPTION and self.where == "uncaught")


def checked(number: int, kind: str, where: str, request: dict[str, Any], sets: Mapping[str, str]) -> Breakpoint:
    """The entry of a request; ``sets`` are the rank sets of launch.json. Raises :class:`UserError`."""
    mode = request.get("mode")
    if kind == EXCEPTION:
        if where not in _FILTERS:
            raise bad_condition("Exception filter", where, f"it is none of {', '.join(_FILTERS)}")
        text, _, comment = (request.get("condition") or "").partition("#")
        names = exception_names(text)
        condition = Condition.parse(f"#{comment}" if comment else None, None, mode, sets)
        return Breakpoint(number, kind, where, request, condition, None, names)
    if kind == FUNCTION and not all(part.isidentifier() for part in where.split(".")):
        raise bad_condition("Function breakpoint", where, "it is no name of a function")
    condition = Condition.parse(request.get("condition"), request.get("hitCondition"), mode, sets)
    return Breakpoint(number, kind, where, request, condition, log_message(request.get("logMessage")))
