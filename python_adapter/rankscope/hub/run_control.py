"""Continue, pause and step for many members at once, each with its own deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rankscope.dap.messages import DapError

if TYPE_CHECKING:
    from rankscope.hub.fleet import Fleet
    from rankscope.hub.member import Member

STEPS = ("next", "stepIn", "stepOut")
ACTIONS = ("continue", "pause", *STEPS)
_DEADLINE = 5.0
_PAUSE_DEADLINE = 5.0


@dataclass
class Outcome:
    """Who did it, who has not answered in time, and who could not, with the reason; all by label."""

    done: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """As the answer to ``rankscope/control``."""
        message = f"{len(self.done)} of {len(self.done) + len(self.late) + len(self.failed)} ranks"
        if self.late:
            message += f"; late: {', '.join(self.late)}"
        if self.failed:
            message += "; " + ", ".join(f"{label}: {why}" for label, why in self.failed.items())
        return {"done": self.done, "late": self.late, "failed": self.failed, "message": message}


async def control(fleet: Fleet, members: Sequence[Member], action: str, timeout: float | None = None) -> Outcome:
    """Do ``action`` in every member at once; returns within ``timeout`` with what it has.

    A member that is in no state for the action (continue while it runs, say) is left out.
    Raises :class:`DapError` for an unknown action.
    """
    if action not in ACTIONS:
        raise DapError(f"'{action}' is none of {', '.join(ACTIONS)}", "bad-action")
    bound = timeout or (_PAUSE_DEADLINE if action == "pause" else _DEADLINE)
    concerned = [member for member in members if is_in_state_for(fleet, member, action)]
    outcome = Outcome()

    async def one(member: Member) -> None:
        try:
            await asyncio.wait_for(_act(fleet, member, action, bound), bound)
        except (TimeoutError, asyncio.TimeoutError):
            outcome.late.append(member.label)
        except DapError as e:
            outcome.failed[member.label] = str(e)
        else:
            outcome.done.append(member.label)

    await asyncio.gather(*(one(member) for member in concerned))
    return outcome


def is_in_state_for(fleet: Fleet, member: Member, action: str) -> bool:
    """Whether the action means anything to the member: a pause that has not come yet can be taken back."""
    if action == "continue" and member.is_armed and fleet.wanted.is_held(member):
        return True
    return bool(member.stopped) != (action == "pause")


async def _act(fleet: Fleet, member: Member, action: str, timeout: float) -> None:
    if action == "pause":
        await pause(fleet, member, timeout)
    elif action == "continue":
        await member.debug("continue", {"threadId": "*"}, timeout=timeout)
    else:
        await member.debug(action, {"threadId": main_stop(member)}, timeout=timeout)


def main_stop(member: Member) -> int:
    """The thread of a stopped member that stopped first. Raises :class:`DapError` when it runs."""
    if not member.stopped:
        raise DapError(f"{member.label} is not stopped")
    return int(next(iter(member.stopped)))


async def pause(fleet: Fleet, member: Member, timeout: float, *, waits: bool = True) -> None:
    """Arm when dormant, ask for a pause and, if it ``waits``, see it stop. A blocked C call ends first."""
    watch = _StopWatch(member)
    fleet.listeners.append(watch)
    try:
        if not member.is_armed:
            await member.arm("pause")
        if not member.stopped:
            await member.debug("pause", {"threadId": "*"}, timeout=timeout)
        if waits and not member.stopped:
            await asyncio.wait_for(watch.has_stopped, timeout)
    finally:
        fleet.listeners.remove(watch)


class _StopWatch:
    """Listens for one member's stop."""

    def __init__(self, member: Member) -> None:
        self.has_stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._member = member

    def _settle(self, error: DapError | None = None) -> None:
        if self.has_stopped.done():
            return
        if error is None:
            self.has_stopped.set_result(None)
        else:
            self.has_stopped.set_exception(error)
            self.has_stopped.exception()  # seen: nobody may be waiting any more

    def member_event(self, member: Member, event: str, body: dict[str, Any]) -> None:
        del body
        if member is self._member and event == "stopped":
            self._settle()

    def member_left(self, member: Member) -> None:
        if member is self._member:
            self._settle(DapError(f"{member.label} has ended"))

    def member_joined(self, member: Member) -> None: ...

    def member_changed(self, member: Member) -> None: ...

    def notice(self, level: str, text: str, member: Member | None) -> None: ...
