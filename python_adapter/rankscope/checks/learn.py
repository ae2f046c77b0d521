"""Which ranks ought to have which tensors alike, told from the first look where nobody has said so: pure functions.

What is the same on all ranks is to stay so. A family of tensors (parameters, gradients, …) of which none is the same
on any two ranks is taken as meant to differ. Where ranks have parameters of other names or shapes, and no majority
has the same ones, they are other stages of a pipeline, or parts of a partitioned optimizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankscope.checks.fingerprint import DIGEST, DTYPE, NAME, PEERS, SHAPE
from rankscope.checks.plan import Groups, grouped

_OF_MODEL = ("buffers", "gradients", "optimizer")
Lists = Mapping[str, Sequence[Sequence[Any]]]  # entries by family


@dataclass
class Learned:
    """For one rank: ``ranks`` to compare with (in the group), families ``left_out``, and tensors' own peers."""

    ranks: list[int]
    left_out: list[str] = field(default_factory=list)
    peers: dict[str, str] = field(default_factory=dict)


def learn(posts: Sequence[Lists], known: Iterable[Sequence[int]] = ()) -> list[Learned]:
    """For each rank, from all ranks' entries; ``known`` are the ranks of process groups that there are."""
    sets = {tuple(sorted(group)) for group in known}
    learned = [Learned([rank]) for rank in range(len(posts))]
    for stage in _stages({rank: _signature(post.get("parameters", ())) for rank, post in enumerate(posts)}):
        here = {rank: posts[rank] for rank in stage}
        left_out: list[str] = []
        peers: dict[str, Groups] = {}
        for family in sorted({family for post in here.values() for family in post}):
            held = {rank: post.get(family, ()) for rank, post in here.items()}
            if not _is_compared(family, held, sets, peers):
                left_out = [*left_out, family]
        if "parameters" in left_out:  # models of their own: what comes from them is equal by chance only
            left_out = sorted({*left_out, *_OF_MODEL})
        for rank in stage:
            own = {name: next(group for group in groups if rank in group) for name, groups in peers.items()}
            learned[rank] = Learned(stage, left_out, {name: ",".join(map(str, group)) for name, group in own.items()})
    return learned


def _signature(entries: Sequence[Sequence[Any]]) -> str:
    return repr([(entry[NAME], entry[SHAPE], entry[DTYPE]) for entry in entries])


def _stages(signatures: Mapping[int, str]) -> Groups:
    """Ranks to be compared with each other; who has no parameters at all is compared with nobody."""
    held = {rank: signature for rank, signature in signatures.items() if signature != _signature(())}
    groups = grouped(held)
    if groups and 2 * len(groups[0]) > len(held):
        groups = [sorted(held)]  # those who differ from most are at fault
    return groups + [[rank] for rank in signatures if rank not in held]


def _is_compared(
    family: str, held: Mapping[int, Sequence[Sequence[Any]]], known: set[tuple[int, ...]], peers: dict[str, Groups]
) -> bool:
    """Whether a family is compared; notes tensors that are the same within known groups only."""
    shapes = grouped({rank: _signature(entries) for rank, entries in held.items()})
    if len(shapes) > 1 and family != "parameters":
        return 2 * len(shapes[0]) > len(held)
    by_name: dict[str, dict[int, str]] = {}
    for rank, entries in held.items():
        for entry in entries:
            if not entry[PEERS] and entry[DIGEST]:
                by_name.setdefault(entry[NAME], {})[rank] = entry[DIGEST]
    partitions = {name: grouped(digests) for name, digests in by_name.items()}
    if partitions and len(held) > 1 and all(len(groups[0]) == 1 for groups in partitions.values()):
        return False
    peers |= {
        name: groups
        for name, groups in partitions.items()
        if 1 < len(groups[0]) < len(held) and all(tuple(group) in known for group in groups)
    }
    return True
