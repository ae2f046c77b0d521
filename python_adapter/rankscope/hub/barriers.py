"""Barrier breakpoints: who gets there is held until all of the set have; then that is one stop.

The set is the breakpoint's rank set. Where that names no group, each group has a barrier of its own. Ranks that have
ended are not awaited, those of a world that are still to join are. Held ranks run on by hand (continue them), or all at
once after ``barrierTimeout``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

from rankscope.hub.entries import Breakpoint
from rankscope.hub.standing import still_to_join

if TYPE_CHECKING:
    from rankscope.hub.fleet import Fleet
    from rankscope.hub.member import Member

BARRIER_EVENT = "barrier"
_MAX_NAMES = 8


@dataclass
class _Barrier:
    """Those that are held at an entry, in the order in which they came; of one group unless that is ``None``."""

    entry: Breakpoint
    group: str | None
    timer: asyncio.TimerHandle
    held: dict[str, Member] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """As a person reads it."""
        where = self.entry.where
        return f"{PurePath(where).name}:{self.entry.line}" if self.entry.line else where


class Barriers:
    """Every barrier at which somebody is held. Owns their timers; :meth:`close` ends them.

    ``on_complete`` is called with those of a barrier that is complete, ``on_timeout`` with those that are to run on.
    Fronts hear of the first by the event :data:`BARRIER_EVENT`, once they know of the last stop.
    """

    def __init__(
        self,
        fleet: Fleet,
        on_complete: Callable[[Sequence[Member]], None],
        on_timeout: Callable[[Sequence[Member]], None],
    ) -> None:
        self._fleet = fleet
        self._on_complete = on_complete
        self._on_timeout = on_timeout
        self._barriers: dict[tuple[int, str | None], _Barrier] = {}
        fleet.wanted.listeners.append(self.look)

    def holds(self, member: Member) -> bool:
        """Whether a member is held: so far its stop is nobody's to look at."""
        return self._of(member) is not None

    def waits_for(self, member: Member) -> list[str] | None:
        """The labels of those whom a held member waits for; ``None``: it is not held."""
        barrier = self._of(member)
        return None if barrier is None else self._missing(barrier)

    def _of(self, member: Member) -> _Barrier | None:
        return next((barrier for barrier in self._barriers.values() if member.id in barrier.held), None)

    # --- who comes and goes -----------------------------------------------------------------------

    def arrived(self, member: Member, hits: Iterable[int]) -> bool:
        """A member has stopped at these entries: whether one is a barrier that holds it, or is complete with it."""
        ids = set(hits)
        entries = [entry for entry in self._fleet.wanted.all() if entry.id in ids and entry.condition.is_barrier]
        if not entries or member.facts.role != "rank":
            return False
        entry = entries[0]
        ranks = entry.condition.ranks
        group = (
            None if ranks is not None and any(part.group is not None for part in ranks.parts) else member.facts.group
        )
        key = (entry.id, group)
        if key not in self._barriers:
            seconds = self._fleet.wanted.settings.barrier_timeout
            timer = asyncio.get_running_loop().call_later(seconds, self._timed_out, key, seconds)
            self._barriers[key] = _Barrier(entry, group, timer)
        self._barriers[key].held[member.id] = member
        self.look()
        return True

    def gone(self, member: Member) -> None:
        """A member runs on, or has ended."""
        for key, barrier in list(self._barriers.items()):
            if barrier.held.pop(member.id, None) is not None and not barrier.held:
                self._end(key)
            elif not member.is_live and self._awaits(barrier, member):
                text = f"the barrier at {barrier.place} no longer waits for it: it has {member.state}"
                self._fleet.notice("info", text, member)
        if not member.is_live:
            self.look()

    def look(self) -> None:
        """Whoever is awaited nowhere any more holds up nobody; a breakpoint that was taken away does not either."""
        if not self._barriers:
            return
        wanted = {entry.id for entry in self._fleet.wanted.all()}
        for key, barrier in list(self._barriers.items()):
            if barrier.entry.id not in wanted or not self._missing(barrier):
                self._complete(key)

    def _awaits(self, barrier: _Barrier, member: Member) -> bool:
        facts = member.facts
        is_of_group = barrier.group is None or facts.group == barrier.group
        return facts.role == "rank" and is_of_group and not member.is_greyed and barrier.entry.may_stop(facts)

    def _missing(self, barrier: _Barrier) -> list[str]:
        known = [member for member in self._fleet.members.values() if self._awaits(barrier, member)]
        running = [member for member in known if member.is_live and member.id not in barrier.held]
        running.sort(key=lambda member: (member.facts.group, member.facts.rank or 0))
        return [
            *(member.label for member in running),
            *(f"{group} {rank}".strip() for group, rank in still_to_join(barrier.entry, known)),
        ]

    # --- how it ends ------------------------------------------------------------------------------

    def _complete(self, key: tuple[int, str | None]) -> None:
        held = sorted(self._end(key), key=lambda member: (member.facts.group, member.facts.rank or 0))
        self._on_complete(held)
        # after the last one's own stop has been told
        asyncio.get_running_loop().call_soon(
            self._fleet.event, held[0], BARRIER_EVENT, {"members": [member.id for member in held]}
        )

    def _timed_out(self, key: tuple[int, str | None], seconds: float) -> None:
        barrier = self._barriers[key]
        missing = self._missing(barrier)
        names = ", ".join(missing[:_MAX_NAMES]) + (
            f" and {len(missing) - _MAX_NAMES} more" if missing[_MAX_NAMES:] else ""
        )
        self._fleet.notice("warning", f"the barrier at {barrier.place} let go after {seconds:g} s; missing: {names}")
        self._on_timeout(self._end(key))

    def _end(self, key: tuple[int, str | None]) -> list[Member]:
        barrier = self._barriers.pop(key)
        barrier.timer.cancel()
        return list(barrier.held.values())

    def close(self) -> None:
        """Time out no more."""
        for barrier in self._barriers.values():
            barrier.timer.cancel()
