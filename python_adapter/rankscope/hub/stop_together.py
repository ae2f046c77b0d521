"""``stopTogether``: when one rank stops, the rest of its group is paused; how far apart they stopped is measured."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankscope.hub.fleet import Fleet
    from rankscope.hub.member import Member
    from rankscope.hub.run_control import RunControl


@dataclass(frozen=True)
class Skew:
    """From the first stop of a group until the last, in ms of the hub's clock; ``stopped`` of ``size`` ranks."""

    milliseconds: float
    stopped: int
    size: int


class StopTogether:
    """Owns the tasks that gather a group. ``skews`` holds a group's last one, until a rank of it runs on."""

    def __init__(self, fleet: Fleet, control: RunControl) -> None:
        self.skews: dict[str, Skew] = {}
        self._fleet = fleet
        self._control = control
        self._gathering: dict[str, asyncio.Task[None]] = {}

    def stopped(self, member: Member) -> None:
        """A rank has stopped: pause those of its group that run, and for whom nobody waits already."""
        group = member.facts.group
        if not self._fleet.wanted.settings.stop_together or member.facts.role != "rank" or group in self._gathering:
            return
        others = [other for other in self._of(group) if not other.stopped and not self._fleet.wanted.holds.of(other)]
        if others:
            self._gathering[group] = asyncio.ensure_future(self._gather(group, member, others))

    def look(self, members: Sequence[Member], since: float) -> None:
        """These were let go one after the other: who of them has stopped again meanwhile counts now."""
        for member in members:
            if member.stopped and self._control.stopped_at.get(member.id, 0.0) >= since:
                self.stopped(member)

    def continued(self, member: Member) -> None:
        """A rank runs on: its group is together no more."""
        self.skews.pop(member.facts.group, None)
        task = self._gathering.pop(member.facts.group, None)
        if task is not None:
            task.cancel()

    def _of(self, group: str) -> list[Member]:
        """Its ranks that may stop."""
        return [
            member
            for member in self._fleet.select(None)
            if member.facts.role == "rank" and member.facts.group == group and not member.is_greyed
        ]

    async def _gather(self, group: str, first: Member, others: Sequence[Member]) -> None:
        began = self._control.stopped_at.get(first.id, 0.0)
        try:
            outcome = await self._control.act(others, "pause")
        finally:
            if self._gathering.get(group) is asyncio.current_task():
                del self._gathering[group]
        ranks = self._of(group)
        times = [self._control.stopped_at[member.id] for member in ranks if member.stopped]
        text = f"{len(times)} of {len(ranks)} ranks of {group or 'the job'} stopped"
        if len(times) > 1:
            skew = self.skews[group] = Skew(1000 * (max(times) - began), len(times), len(ranks))
            text += f" within {skew.milliseconds:.0f} ms"
        waiting = [f"pause pending: {pending}" for pending in outcome.pending]
        missing = [f"late: {label}" for label in outcome.late]
        self._fleet.notice("info", "; ".join([text, *waiting, *missing]))
        self._fleet.changed(first)

    def close(self) -> None:
        """Gather nobody any more."""
        for task in self._gathering.values():
            task.cancel()
