"""What the first rank of a group makes of all ranks' posts: pure functions, of which each rank gets the result.

Ranks are numbers in the group here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankscope.checks.fingerprint import DIGEST, DTYPE, EXTRA, KIND, LOCAL, NAME, NOTE, PEERS, SHAPE
from rankscope.checks.replicas import ALONE
from rankscope.checks.structure import SHARD

Groups = list[list[int]]  # of ranks: the largest first, of equal ones the one with the lowest rank


@dataclass
class Suspect:
    """A tensor whose bits are not the same on ranks that ought to have it alike; ``groups`` have the same bits each."""

    name: str
    groups: Groups


@dataclass
class Misfit:
    """A tensor that cannot be compared, since ranks lack it or it has another ``what`` (shape, dtype, …) there."""

    name: str
    what: str
    groups: Groups
    texts: list[str]


@dataclass
class Plan:
    """``skipped``: names, each with why and on which ranks. ``compared`` and ``alone`` are counts of tensors."""

    suspects: list[Suspect] = field(default_factory=list)
    misfits: list[Misfit] = field(default_factory=list)
    skipped: dict[str, tuple[str, list[int]]] = field(default_factory=dict)
    compared: int = 0
    alone: int = 0

    def packed(self) -> dict[str, Any]:
        """As msgpack carries it."""
        return {
            "suspects": [vars(suspect) for suspect in self.suspects],
            "misfits": [vars(misfit) for misfit in self.misfits],
            "skipped": {name: list(why) for name, why in self.skipped.items()},
            "compared": self.compared,
            "alone": self.alone,
        }

    @classmethod
    def unpacked(cls, raw: Mapping[str, Any]) -> Plan:
        """What :meth:`packed` made."""
        return cls(
            [Suspect(**each) for each in raw["suspects"]],
            [Misfit(**each) for each in raw["misfits"]],
            {name: (why, ranks) for name, (why, ranks) in raw["skipped"].items()},
            raw["compared"],
            raw["alone"],
        )


def are_equal(lines: Sequence[Mapping[str, Any]]) -> bool:
    """Whether structure and values are the same wherever they ought to be."""
    if len({line["structure"] for line in lines}) > 1:
        return False
    roots: dict[str, str] = {}
    return all(roots.setdefault(peers, root) == root for line in lines for peers, root in line["roots"].items())


def made(lists: Sequence[Sequence[Sequence[Any]]], ignored: Iterable[str] = ()) -> Plan:
    """What to look at more closely, of every rank's list of entries."""
    plan, left_out = Plan(), set(ignored)
    by_name: dict[str, dict[int, Sequence[Any]]] = {}
    for rank, entries in enumerate(lists):
        for entry in entries:
            by_name.setdefault(entry[NAME], {})[rank] = entry
    for name, held in by_name.items():
        if name in left_out:
            plan.skipped[name] = ("ignored", sorted(held))
            continue
        misfit = _misfit(name, held, len(lists))
        noted = {rank: entry[NOTE] for rank, entry in held.items() if entry[NOTE]}
        if misfit is not None:
            plan.misfits.append(misfit)
        elif noted:
            plan.skipped[name] = (next(iter(noted.values())), sorted(noted))
        else:
            _compare(plan, name, held)
    return plan


def _misfit(name: str, held: Mapping[int, Sequence[Any]], count: int) -> Misfit | None:
    if all(entry[KIND] == SHARD for entry in held.values()):
        return None
    if len(held) < count:
        present, absent = sorted(held), [rank for rank in range(count) if rank not in held]
        groups = ordered([present, absent])
        return Misfit(name, "missing", groups, ["there" if group is present else "missing" for group in groups])
    noted = [rank for rank, entry in held.items() if entry[NOTE]]
    extra = "layout" if held[0][KIND] == "tensor" else "value"
    for what, at in (("kind", KIND), ("dtype", DTYPE), ("shape", SHAPE), (extra, EXTRA)):
        groups = grouped({rank: str(entry[at]) for rank, entry in held.items()})
        if len(groups) > 1 and not (at == EXTRA and noted):
            return Misfit(name, what, groups, [_text(held[group[0]][at]) for group in groups])
    return None


def _text(fact: Any) -> str:
    return ("×".join(map(str, fact)) or "scalar") if isinstance(fact, list) else str(fact) or "plain"


def _compare(plan: Plan, name: str, held: Mapping[int, Sequence[Any]]) -> None:
    alike: dict[str, dict[int, Sequence[Any]]] = {}
    for rank, entry in held.items():
        if entry[PEERS] != ALONE:
            alike.setdefault(entry[PEERS], {})[rank] = entry
    if not alike:
        plan.alone += 1
        return
    plan.compared += 1
    for peers in alike.values():
        sizes = grouped({rank: str(entry[LOCAL]) for rank, entry in peers.items()})
        groups = grouped({rank: str(entry[DIGEST]) for rank, entry in peers.items()})
        if len(sizes) > 1:
            plan.misfits.append(Misfit(name, "shape", sizes, [str(peers[group[0]][LOCAL]) for group in sizes]))
        elif len(groups) > 1:
            plan.suspects.append(Suspect(name, groups))


def grouped(words: Mapping[int, str]) -> Groups:
    """Ranks with the same word together."""
    groups: dict[str, list[int]] = {}
    for rank in sorted(words):
        groups.setdefault(words[rank], []).append(rank)
    return ordered(groups.values())


def ordered(groups: Iterable[list[int]]) -> Groups:
    """The largest first: the majority, where there is one."""
    return sorted(groups, key=lambda group: (-len(group), group[0]))
