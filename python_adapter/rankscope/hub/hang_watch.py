"""When a stall is a hang: nobody has got on for so long, and nobody that it waits for is stopped by the debugger.

Pure: time is given. What was told is remembered until it has gone, and whether it has ended well.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from rankscope.hub.lineup import Place, Rank, Stall
from rankscope.hub.stall_graph import Root, edges, reachable, roots

_SETTLE_SECONDS = 2.0
_EXCUSES = ("paused", "starting")

Key = tuple[frozenset[Hashable], str]
"""What a root consists of, and in what its ranks differ."""


@dataclass
class Told:
    """A hang that was told, until it has gone: from ``gone_at`` on (the hub's clock)."""

    root: Root
    waiting: list[Place]
    finding: str = ""
    gone_at: float | None = None

    @property
    def seconds(self) -> float:
        """How long nothing got on."""
        return 0.0 if self.gone_at is None else self.gone_at - self.root.since


@dataclass
class News:
    """What has changed: ``due`` is to be told, ``ended`` got on by itself. Look again at ``next`` (the hub's clock)."""

    due: list[Root] = field(default_factory=list)
    ended: list[Told] = field(default_factory=list)
    stuck: list[Stall] = field(default_factory=list)
    next: float | None = None


class Watch:
    """Judges stalls over time. ``after``: seconds without progress that make a hang; 0: there is none."""

    def __init__(self, after: float) -> None:
        self.after = after
        self.told: dict[Key, Told] = {}
        self._excused: dict[Hashable, float] = {}
        self._disagreed: set[frozenset[Hashable]] = set()

    def look(self, stalls: Sequence[Stall], ranks: Mapping[Place, Rank], now: float) -> News:
        """What is new of what there is now. ``stuck`` are all the hangs, those behind others included."""
        news = News()
        if not self.after:
            return news
        excused = self._excuse(stalls, ranks, now)
        begins = [max(stall.since, self._excused.get(stall.key, 0.0)) for stall in stalls]
        news.stuck = [
            stall
            for stall, begin in zip(stalls, begins, strict=True)
            if stall.mismatch or (now - begin >= self.after and stall.key not in excused)
        ]
        began = {stall.key: begin for stall, begin in zip(stalls, begins, strict=True)}
        nexts = []
        for root in roots(stalls):
            key = key_of(root)
            due = now if key[1] else max(began[stall.key] for stall in root.stalls) + self.after
            if key in self.told or root.key in self._disagreed:
                continue
            if due <= now and (key[1] or not root.key & excused):
                news.due.append(root)
            elif due > now:
                nexts.append(due)
        self._forget({stall.key for stall in stalls}, ranks, now, news)
        nexts += [told.gone_at + _SETTLE_SECONDS for told in self.told.values() if told.gone_at is not None]
        news.next = min(nexts, default=None)
        return news

    def note(self, root: Root) -> Told:
        """A root has been told."""
        if root.mismatch:
            self._disagreed.add(root.key)
        waiting = [(stall.group.world, number) for stall in root.stalls for number in stall.waiting]
        told = self.told[key_of(root)] = Told(root, waiting)
        return told

    def note_mismatch(self, root: Root) -> bool:
        """Ranks have disagreed, in what may have ended; whether that is news."""
        is_news = root.key not in self._disagreed
        self._disagreed.add(root.key)
        return is_news

    def _excuse(self, stalls: Sequence[Stall], ranks: Mapping[Place, Rank], now: float) -> set[Hashable]:
        """The stalls that wait in the end for somebody who is stopped: their time begins anew when that one goes on."""
        behind: list[list[int]] = [[] for _ in stalls]
        for at, others in enumerate(edges(stalls)):
            for other in others:
                behind[other].append(at)
        starts = [at for at, stall in enumerate(stalls) if _awaits_stopped(stall, ranks)]
        excused = {stalls[at].key for at in reachable(behind, starts)}
        current = {stall.key for stall in stalls}
        self._excused = {key: at for key, at in self._excused.items() if key in current}
        self._excused.update(dict.fromkeys(excused, now))
        return excused

    def _forget(self, current: set[Hashable], ranks: Mapping[Place, Rank], now: float, news: News) -> None:
        for key, told in list(self.told.items()):
            if key[0] <= current:
                told.gone_at = None
                continue
            told.gone_at = now if told.gone_at is None else told.gone_at
            waited = [rank for place in told.waiting if (rank := ranks.get(place)) is not None]
            states = {rank.state for rank in waited}
            if states & {"crashed", "lost"} or any(rank.keys & key[0] for rank in waited):
                del self.told[key]  # they have died of it, or were ended in it
            elif now - told.gone_at >= _SETTLE_SECONDS or states <= {"exited"}:
                del self.told[key]
                news.ended.append(told)


def key_of(root: Root) -> Key:
    """By what a root is known."""
    return root.key, root.mismatch


def _awaits_stopped(stall: Stall, ranks: Mapping[Place, Rank]) -> bool:
    """Whether one that it waits for (where all are there: one of them) is stopped by the debugger."""
    awaited = (ranks.get((stall.group.world, number)) for number in stall.missing or stall.waiting)
    return any(rank is not None and rank.state in _EXCUSES for rank in awaited)
