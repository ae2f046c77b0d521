"""What waits for what: stalls as a graph, what is at the bottom of it, and its circles."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from rankscope.hub.lineup import ANY_SOURCE, Place, Stall


@dataclass
class Root:
    """What has to be mended: one stall that waits for nobody who waits, or a circle of stalls (``is_cycle``)."""

    stalls: list[Stall]
    is_cycle: bool = False

    @property
    def key(self) -> frozenset[Hashable]:
        """The same as long as it is the same."""
        return frozenset(stall.key for stall in self.stalls)

    @property
    def mismatch(self) -> str:
        """In what its ranks differ; empty when in nothing."""
        return next((stall.mismatch for stall in self.stalls if stall.mismatch), "")

    @property
    def since(self) -> float:
        """From when on none of it can get on: the hub's clock."""
        return max(stall.since for stall in self.stalls)


def edges(stalls: Sequence[Stall]) -> list[list[int]]:
    """For each stall, the numbers of those that ranks missing in it wait in."""
    waited_in: dict[Place, list[int]] = {}
    for at, stall in enumerate(stalls):
        for number in (*stall.waiting, *stall.ahead):
            waited_in.setdefault((stall.group.world, number), []).append(at)
    found = []
    for at, stall in enumerate(stalls):
        missing = () if stall.peer == ANY_SOURCE else stall.missing
        behind = (waited_in.get((stall.group.world, number), ()) for number in missing)
        found.append(sorted({other for others in behind for other in others} - {at}))
    return found


def roots(stalls: Sequence[Stall]) -> list[Root]:
    """What all the others wait for: stalls whose missing ranks do not wait themselves, circles, and disagreements."""
    graph = edges(stalls)
    circles = [circle for circle in _circles(graph) if not any(stalls[at].mismatch for at in circle)]
    alone = (at for at, behind in enumerate(graph) if not behind or stalls[at].mismatch)
    return [Root([stalls[at] for at in circle], is_cycle=True) for circle in circles] + [
        Root([stalls[at]]) for at in alone
    ]


def _circles(graph: Sequence[Sequence[int]]) -> list[list[int]]:
    """One circle of each knot, by a walk in depth without recursion: a pipeline's chain is as long as its ranks."""
    done: set[int] = set()
    found: list[list[int]] = []
    for start in range(len(graph)):
        trail: list[int] = []
        at_of: dict[int, int] = {}
        todo = [(start, False)]
        while todo:
            node, is_left = todo.pop()
            if is_left:
                trail.pop()
                del at_of[node]
                done.add(node)
            elif node in at_of:
                circle = trail[at_of[node] :]
                if not any(node in other for other in found for node in circle):
                    found.append(circle)
            elif node not in done:
                at_of[node] = len(trail)
                trail.append(node)
                todo.append((node, True))
                todo += [(other, False) for other in reversed(graph[node])]
    return found


def reachable(graph: Sequence[Sequence[int]], starts: Iterable[int]) -> set[int]:
    """The stalls that these wait for in the end, themselves included."""
    seen: set[int] = set()
    todo = list(starts)
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo += graph[node]
    return seen
