"""What every part of a front leans on: the connection, the ids, the members it presents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from rankscope.dap.ids import Ids
from rankscope.dap.messages import DapError
from rankscope.ranks import DRIVER, write_set

if TYPE_CHECKING:
    from pathlib import Path

    from rankscope.dap.channel import Channel
    from rankscope.dap.sessions import Sessions
    from rankscope.hub.breakpoints import Wanted
    from rankscope.hub.fleet import Fleet
    from rankscope.hub.member import Member
    from rankscope.hub.pause_limits import PauseLimits
    from rankscope.hub.settings import LaunchSettings

ANSWER_SECONDS = 10.0
_NAMED = 3


@dataclass
class ShownBreakpoint:
    """One breakpoint as this client knows it, and what it was last told of it."""

    id: int
    kind: str
    where: str
    request: dict[str, Any]
    told: dict[str, Any] = field(default_factory=dict)


class JobOfHub(Protocol):
    """What a front asks of the job."""

    exit_code: int | None
    was_launched: bool

    def leave_running(self) -> None:
        """Let the job go on without the editor."""

    def driver_exited(self, code: int) -> None:
        """The driver, started by the front's client, has ended."""


class HubOfFront(Protocol):
    """What a front asks of its hub."""

    fleet: Fleet
    wanted: Wanted
    limits: PauseLimits
    settings: LaunchSettings | None
    fronts: list[Any]

    @property
    def root(self) -> Any:
        """The front whose breakpoints are the job's."""

    @property
    def job(self) -> JobOfHub:
        """The job."""

    async def launch(self, settings: LaunchSettings, front: Any) -> None:
        """Start the job."""

    def become_root(self, front: Any) -> None:
        """The front is the job's root session from now on, until it has gone."""

    async def open_record(self, place: str, base: Path) -> None:
        """Present a run that is over."""

    async def end_job(self, why: str = "") -> None:
        """End it, politely once, then by force; say why."""

    async def restart(self) -> None:
        """End it and launch it again."""

    def front_closed(self, front: Any) -> None:
        """The connection has gone."""


class FrontBase:
    """State shared by the parts of :class:`rankscope.dap.front.Front`.

    ``shown`` are the members presented now, by id; ``stops`` the threads told as
    stopped, per member; ``asked`` the members whose next stop this front asked for.
    ``sessions`` are the root's child sessions; ``is_extensions`` says that the client is
    VS Code with our extension in it.
    """

    def __init__(self, channel: Channel, hub: HubOfFront) -> None:
        self.channel = channel
        self.hub = hub
        self.ids = Ids()
        self.client: dict[str, Any] = {}
        self.sessions: Sessions | None = None
        self.is_extensions = False
        self.is_configured = False
        self.is_ended = False
        self.session = ""
        self.shown: dict[str, Member] = {}
        self.stops: dict[str, dict[int, int]] = {}
        self.asked: set[str] = set()
        self.thread_names: dict[tuple[str, int], str] = {}
        self.breakpoints: dict[tuple[str, str], list[ShownBreakpoint]] = {}

    @property
    def is_root(self) -> bool:
        """Whether this is the job's root session."""
        return self.hub.root is self

    @property
    def presents_several(self) -> bool:
        """Whether threads of more than one member are shown, so that names must tell them apart."""
        return len(self.shown) > 1

    def member(self, member_id: str) -> Member:
        """A member by id. Raises :class:`DapError` when it has ended."""
        member = self.hub.fleet.members.get(member_id)
        if member is None:
            raise DapError("This rank belongs to a run that is over.", "rank-ended")
        if not member.is_live:
            raise DapError(f"{member.label} has {member.state}.", "rank-ended")
        return member

    def rank_writer(self) -> Callable[[Sequence[Member]], str]:
        """Writes members as a rank set, and after it, shortly, those without a number in it: children, say."""
        groups = {m.facts.group: m.facts for m in self.hub.fleet.members.values() if m.facts.rank is not None}

        def write(members: Sequence[Member]) -> str:
            others = [m.label for m in members if not _has_number(m)]
            more = [f"{len(others) - _NAMED} more"] if len(others) > _NAMED + 1 else others[_NAMED:]
            text = write_set((m.facts for m in members if _has_number(m)), groups.values())
            return ",".join(filter(None, [text, *others[:_NAMED], *more]))

        return write

    def thread(self, arguments: dict[str, Any]) -> tuple[Member, int]:
        """The member and its own thread id that ``threadId`` means."""
        member_id, local = self.ids.threads.find(arguments.get("threadId"))
        return self.member(member_id), local

    async def debug(
        self, member: Member, command: str, arguments: dict[str, Any], timeout: float = ANSWER_SECONDS
    ) -> dict[str, Any]:
        """A request to a member's debugpy. Raises :class:`DapError` that names the member, also when it is late."""
        try:
            return await member.debug(command, arguments, timeout=timeout)
        except (TimeoutError, asyncio.TimeoutError) as e:
            raise DapError(f"{member.label} did not answer '{command}' within {timeout:g} s.", "rank-late") from e

    def shower(self, member: Member) -> Any:
        """The front that presents a member; this one where several do, ``None`` where none does."""
        if member.id in self.shown:
            return self
        return next((front for front in self.hub.fronts if member.id in front.shown), None)

    def runs_on(self, member: Member) -> None:
        """What a member's frames and variables were is gone."""
        self.ids.resumed(member.id)


def _has_number(member: Member) -> bool:
    facts = member.facts
    return facts.role == DRIVER or (facts.role == "rank" and facts.rank is not None)
