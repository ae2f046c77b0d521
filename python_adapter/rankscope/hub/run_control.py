"""Continue, pause, step and run to a line for many members at once, each with its own deadline.

Steps are in lock-step: all of the set step at once. Who has not arrived within the deadline is told as pending, with
the call it is in and whom that waits for, and arrives later by itself.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rankscope.dap.messages import DapError
from rankscope.hub.barriers import Barriers
from rankscope.hub.member import STEPS
from rankscope.hub.stop_together import StopTogether

if TYPE_CHECKING:
    from rankscope.hub.fleet import Fleet
    from rankscope.hub.member import Member

RUN_TO = "runToCursor"
ACTIONS = ("continue", "pause", *STEPS, RUN_TO)
_DEADLINE = 5.0
_ARRIVE_SECONDS = 2.0

Place = tuple[str, int]


@dataclass(frozen=True)
class Pending:
    """Who has been told and not arrived: the blocking call it is in (or empty), and whom that waits for."""

    member: Member
    call: str
    waits_for: list[str]

    def body(self) -> dict[str, Any]:
        """As a part of the answer to ``rankscope/control``."""
        return {
            "label": self.member.label,
            "member": self.member.id,
            "call": self.call,
            "waitsFor": self.waits_for,
        }

    def __str__(self) -> str:
        where = f"in {self.call}" if self.call else "has not arrived"
        return f"{self.member.label} {where}" + (f", waits for {', '.join(self.waits_for)}" if self.waits_for else "")


@dataclass
class Outcome:
    """Who did it, who has not answered in time, who could not, with the reason, and who is yet to arrive."""

    done: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    pending: list[Pending] = field(default_factory=list)

    def body(self) -> dict[str, Any]:
        """As the answer to ``rankscope/control``."""
        count = len(self.done) + len(self.late) + len(self.failed) + len(self.pending)
        parts = [f"{len(self.done)} of {count} ranks"]
        if self.late:
            parts.append(f"late: {', '.join(self.late)}")
        parts += [f"{label}: {why}" for label, why in self.failed.items()]
        parts += [f"pending: {pending}" for pending in self.pending]
        return {
            "done": self.done,
            "late": self.late,
            "failed": self.failed,
            "pending": [pending.body() for pending in self.pending],
            "message": "; ".join(parts),
        }


class RunControl:
    """What a fleet's members are told to do, and who of them has come. Listens to the fleet before its fronts do.

    ``stopped_at`` has by id when members last stopped (the loop's time), ``looked_at`` is the id of the member whose
    stop took an editor's focus last.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.stopped_at: dict[str, float] = {}
        self.looked_at = ""
        self.barriers = Barriers(fleet, self._complete, self._let_go)
        self.together = StopTogether(fleet, self)
        self._fleet = fleet
        self._awaited: defaultdict[str, set[asyncio.Future[None]]] = defaultdict(set)
        self._tasks: set[asyncio.Task[Any]] = set()
        fleet.listeners.append(self)

    def close(self) -> None:
        """Gather nobody any more, and let no barrier time out."""
        self.barriers.close()
        self.together.close()
        for task in self._tasks:
            task.cancel()

    # --- telling many -----------------------------------------------------------------------------

    async def act(
        self, members: Sequence[Member], action: str, timeout: float | None = None, place: Place | None = None
    ) -> Outcome:
        """Do ``action`` in every member at once; returns within ``timeout`` (and half a second) with what it has.

        A member that is in no state for the action (continue while it runs, say) is left out. ``place`` is the client's
        path and the line of ``runToCursor``. Raises :class:`DapError` for an unknown action.
        """
        if action not in ACTIONS:
            raise DapError(f"'{action}' is none of {', '.join(ACTIONS)}", "bad-action")
        if action == RUN_TO and place is None:
            raise DapError("Run to cursor: where to? A path and a line are missing.", "bad-action")
        began = asyncio.get_running_loop().time()
        bound = timeout or _DEADLINE
        concerned = [member for member in members if self.is_in_state_for(member, action)]
        outcome = Outcome()
        waiting: list[Member] = []

        async def one(member: Member) -> None:
            try:
                if not await self._one(member, action, place, began + bound, timeout or _ARRIVE_SECONDS):
                    waiting.append(member)
                    return
            except (TimeoutError, asyncio.TimeoutError):
                outcome.late.append(member.label)
            except DapError as e:
                outcome.failed[member.label] = str(e)
            else:
                outcome.done.append(member.label)

        await asyncio.gather(*(one(member) for member in concerned))
        outcome.pending += await self._pending(waiting)
        if action == "continue":
            self.together.look(concerned, began)
        return outcome

    async def _one(self, member: Member, action: str, place: Place | None, deadline: float, patience: float) -> bool:
        """Tell one member; whether it has done so by the deadline, and within ``patience`` after it was told."""
        loop = asyncio.get_running_loop()
        if action == "continue":
            if member.is_armed:
                await member.debug("continue", {"threadId": "*"}, timeout=deadline - loop.time())
            self._fleet.wanted.holds.let_go(member)
            return True
        with _Awaited(self._awaited[member.id]) as arrival:
            await asyncio.wait_for(asyncio.shield(self.tell(member, action, place)), deadline - loop.time())
            try:
                await asyncio.wait_for(arrival, max(0.0, min(deadline - loop.time(), patience)))
            except (TimeoutError, asyncio.TimeoutError):
                return False
        return True

    def tell(self, member: Member, action: str, place: Place | None = None) -> asyncio.Task[Any]:
        """Tell a member to pause or step; the task ends, maybe with :class:`DapError`, when it has been told.

        Who waits for it shields it: what is cancelled while it arms would be neither armed nor dormant.
        """
        self._fleet.wanted.holds.begin(member, action)
        return self._start(self._tell(member, action, place))

    async def _tell(self, member: Member, action: str, place: Place | None) -> None:
        holds = self._fleet.wanted.holds
        try:
            if action == "pause":
                if not member.is_armed:
                    await member.arm("pause")
                if not member.stopped and holds.of(member):  # else it was taken back
                    await member.debug("pause", {"threadId": "*"})
            elif action == RUN_TO and place is not None:
                await holds.run_to(member, *place)
                await member.debug("continue", {"threadId": "*"})
            else:
                await member.debug(action, {"threadId": main_stop(member)})
        except DapError:
            holds.let_go(member)
            raise

    def _start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # seen: who is late is told as late
        return task

    def is_in_state_for(self, member: Member, action: str) -> bool:
        """Whether the action means anything to the member: a pause that has not come yet can be taken back."""
        if action == "continue" and self._fleet.wanted.holds.of(member):
            return True
        return bool(member.stopped) != (action == "pause")

    # --- who is yet to come -----------------------------------------------------------------------

    async def _pending(self, members: Sequence[Member]) -> list[Pending]:
        """Where they are, and whom they wait for, asked now."""
        groups = {member.facts.group for member in members}
        everybody = [member for member in self._fleet.select(None) if member.facts.group in groups]
        calls, _ = await asyncio.gather(
            asyncio.gather(*(_call_of(member) for member in members)), self._fleet.hangs.ask(everybody)
        )
        return [Pending(member, call, self._awaited_by(member)) for member, call in zip(members, calls, strict=True)]

    def _awaited_by(self, member: Member) -> list[str]:
        return [other.label for other in self._fleet.hangs.waits_for(member)]

    def pending_body(self, member: Member) -> dict[str, Any] | None:
        """``{action, waitsFor}`` of a member that was told to stop or step a while ago and has not stopped."""
        hold = None if member.stopped else self._fleet.wanted.holds.shown(member)
        return None if hold is None else {"action": hold.action, "waitsFor": self._awaited_by(member)}

    # --- what the fleet tells ---------------------------------------------------------------------

    def member_event(self, member: Member, event: str, body: dict[str, Any]) -> None:
        """Somebody has stopped or runs on."""
        if event == "stopped":
            self.stopped_at[member.id] = asyncio.get_running_loop().time()
            for arrival in self._awaited.pop(member.id, ()):
                if not arrival.done():
                    arrival.set_result(None)
            hits = self._fleet.wanted.entries_of(member, body.get("hitBreakpointIds") or ())
            if not self.barriers.arrived(member, hits):
                self.together.stopped(member)
        elif event == "continued":
            self.barriers.gone(member)
            self.together.continued(member)

    def member_left(self, member: Member) -> None:
        """A process has ended: nobody waits for it."""
        self.stopped_at.pop(member.id, None)
        for arrival in self._awaited.pop(member.id, ()):
            if not arrival.done():
                arrival.set_exception(DapError(f"{member.label} has ended"))
        self.barriers.gone(member)

    def member_joined(self, member: Member) -> None:
        """Not for us."""

    def member_changed(self, member: Member) -> None:
        """Not for us."""

    def notice(self, level: str, text: str, member: Member | None) -> None:
        """Not for us."""

    def _complete(self, members: Sequence[Member]) -> None:
        """All of a barrier have arrived: from now on it is a stop like any other."""
        self.together.stopped(members[0])

    def _let_go(self, members: Sequence[Member]) -> None:
        """A barrier has waited long enough."""
        self._start(self.act(members, "continue"))


class _Awaited:
    """A future in a set, for as long as somebody waits for it."""

    def __init__(self, futures: set[asyncio.Future[None]]) -> None:
        self._futures = futures
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __enter__(self) -> asyncio.Future[None]:
        self._futures.add(self._future)
        return self._future

    def __exit__(self, *_: object) -> None:
        self._futures.discard(self._future)
        if self._future.done() and not self._future.cancelled():
            self._future.exception()  # seen: nobody may be waiting any more


async def _call_of(member: Member) -> str:
    """The blocking call that a member is in; empty where it is in none, or does not say."""
    try:
        return str(((await member.look()).get("frame") or {}).get("call") or "")
    except (DapError, TimeoutError, asyncio.TimeoutError):
        return ""


def main_stop(member: Member) -> int:
    """The thread of a stopped member that stopped first. Raises :class:`DapError` when it runs."""
    if not member.stopped:
        raise DapError(f"{member.label} is not stopped")
    return int(next(iter(member.stopped)))
