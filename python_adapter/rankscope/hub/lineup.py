"""The ranks' collectives, sends and receives lined up by sequence number: who waits in which, and for whom.

Pure: it knows what the ranks have told, nothing of links or time. Ranks are those of a world, by number.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

ANY_SOURCE = -1
# Where all ranks give as much as each other, and where they give the same type.
_SAME_SIZE = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter")
_ONE_SIDED = ("scatter", "gather", "barrier")

Sizes = tuple[tuple[int, ...], ...]
Place = tuple[str, int]
"""A world of the job, and a rank's number in it."""


@dataclass(frozen=True, slots=True)
class Group:
    """A process group: its world, torch's name of it, and the world's ranks in it."""

    world: str
    name: str
    ranks: tuple[int, ...]
    desc: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Signature:
    """What the ranks of one collective have to agree in."""

    op: str
    sizes: Sizes = ()
    dtypes: tuple[str, ...] = ()

    @property
    def essence(self) -> tuple[str, tuple[int, ...], tuple[str, ...]]:
        """Equal for ranks that agree: shapes may differ where counts do not, and a root may give what others do not."""
        op = self.op.strip("_").removesuffix("_base")
        if op.startswith(_ONE_SIDED):
            return op, (), ()
        counts = tuple(math.prod(size) for size in self.sizes) if op.startswith(_SAME_SIZE) else ()
        return op, counts, self.dtypes

    def __str__(self) -> str:
        what = ", ".join(
            f"{dtype}[{','.join(map(str, size))}]" for size, dtype in zip(self.sizes, self.dtypes, strict=False)
        )
        return f"{self.op} of {what}" if what else self.op


@dataclass(frozen=True, slots=True)
class Wait:
    """One operation that a rank has entered and that has not ended. ``since`` is the hub's clock, seconds."""

    group: Group
    seq: int
    what: Signature
    since: float
    peer: int | None = None
    tag: int = 0

    @property
    def key(self) -> Hashable:
        """What is waited in: the same for every rank of a collective."""
        if self.peer is None:
            return self.group, self.seq
        return self.group, self.what.op, self.peer, self.tag, self.seq


@dataclass
class Rank:
    """What is known of one rank. ``state`` is its member's; ``entered`` are collectives, as far as that was heard."""

    place: Place
    state: str
    waits: tuple[Wait, ...] = ()
    entered: dict[Group, int] = field(default_factory=dict)
    recent: dict[tuple[Group, int], Signature] = field(default_factory=dict)
    counts: dict[tuple[str, Group, int, int], int] = field(default_factory=dict)  # by kind, group, peer, tag

    @property
    def is_live(self) -> bool:
        """Whether its process may still get on."""
        return self.state in ("starting", "running", "paused")

    @property
    def keys(self) -> set[Hashable]:
        """The keys of the stalls that it waits in."""
        return {wait.key if wait.peer is None else (*self.place, wait.key) for wait in self.waits}


@dataclass
class Stall:
    """One operation that has not ended. ``missing`` have not entered it, as far as is known.

    ``variants``: the ranks by what they run, the most first, where they differ. ``unsure``: who knows more.
    """

    key: Hashable
    group: Group
    seq: int
    what: Signature
    since: float
    waiting: list[int]
    missing: list[int]
    peer: int | None = None
    tag: int = 0
    variants: list[tuple[Signature, list[int]]] = field(default_factory=list)
    unsure: list[int] = field(default_factory=list)
    ahead: list[int] = field(default_factory=list)

    @property
    def is_peer(self) -> bool:
        """Whether it is a send or a receive."""
        return self.peer is not None

    @property
    def mismatch(self) -> str:
        """In what its ranks differ: ``op``, ``size`` or ``dtype``; empty when in nothing."""
        if not self.variants:
            return ""
        if self.is_peer:
            counts = {sum(math.prod(size) for size in what.sizes) for what, _ in self.variants}
            return "size" if len(counts) > 1 else "dtype"
        essences = [what.essence for what, _ in self.variants]
        return next(name for at, name in enumerate(("op", "size", "dtype")) if len({e[at] for e in essences}) > 1)


def line_up(ranks: Mapping[Place, Rank]) -> list[Stall]:
    """Every operation that some live rank waits in."""
    collectives: dict[Group, list[tuple[Rank, Wait]]] = {}
    stalls: list[Stall] = []
    for rank in ranks.values():
        for wait in rank.waits if rank.is_live else ():
            if wait.peer is None:
                collectives.setdefault(wait.group, []).append((rank, wait))
            else:
                stalls.append(_of_peer(rank, wait, ranks))
    stalls += [_of_group(group, waits, ranks) for group, waits in collectives.items()]
    return stalls


def _of_group(group: Group, waits: list[tuple[Rank, Wait]], ranks: Mapping[Place, Rank]) -> Stall:
    """The collective that the rearmost ranks of a group wait in; those in a later one have ended it."""
    seq = min(wait.seq for _, wait in waits)
    here = [(rank, wait) for rank, wait in waits if wait.seq == seq]
    ahead = sorted({rank.place[1] for rank, wait in waits if wait.seq > seq})
    waiting = sorted({rank.place[1] for rank, _ in here})
    known = {rank.place[1]: wait.what for rank, wait in here}
    missing, unsure = [], []
    for number in group.ranks:
        rank = ranks.get((group.world, number))
        if number in known:
            continue
        if rank is not None and (group, seq) in rank.recent:
            known[number] = rank.recent[group, seq]
        if rank is not None and rank.is_live:
            unsure.append(number)
        if rank is None or rank.entered.get(group, 0) < seq:
            missing.append(number)
    since = min(wait.since for _, wait in here)
    return Stall(
        (group, seq),
        group,
        seq,
        known[waiting[0]],
        since,
        waiting,
        missing,
        variants=_variants(known),
        unsure=unsure,
        ahead=ahead,
    )


def _variants(known: Mapping[int, Signature]) -> list[tuple[Signature, list[int]]]:
    by_essence: dict[object, tuple[Signature, list[int]]] = {}
    for number in sorted(known):
        by_essence.setdefault(known[number].essence, (known[number], []))[1].append(number)
    found = sorted(by_essence.values(), key=lambda pair: -len(pair[1]))
    return found if len(found) > 1 else []


def _of_peer(rank: Rank, wait: Wait, ranks: Mapping[Place, Rank]) -> Stall:
    """A send or receive; nobody is missing once the other side has posted its own."""
    world, number = rank.place
    other = "send" if wait.what.op == "recv" else "recv"
    peers = [peer for peer in wait.group.ranks if peer != number] if wait.peer == ANY_SOURCE else [wait.peer or 0]
    missing, unsure, variants = [], [], []
    total = 0
    for peer in peers:
        its = ranks.get((world, peer))
        posted = 0
        if its is not None:
            posted = its.counts.get((other, wait.group, number, wait.tag), 0)
            if other == "recv":
                posted += its.counts.get((other, wait.group, ANY_SOURCE, wait.tag), 0)
            mine = next((one for one in its.waits if _meets(one, wait, number)), None)
            if mine is not None:
                posted = max(posted, mine.seq)
                variants = _variants_of_peers(wait, number, mine, peer)
            elif its.is_live:
                unsure.append(peer)
        total += posted
        if posted < wait.seq:
            missing.append(peer)
    if wait.peer == ANY_SOURCE:
        missing = peers if total < wait.seq else []
    return Stall(
        (world, number, wait.key),
        wait.group,
        wait.seq,
        wait.what,
        wait.since,
        [number],
        missing,
        wait.peer,
        wait.tag,
        variants,
        unsure,
    )


def _meets(theirs: Wait, ours: Wait, our_number: int) -> bool:
    is_other_side = theirs.what.op in ("send", "recv") and theirs.what.op != ours.what.op
    return is_other_side and (theirs.group, theirs.tag, theirs.peer) == (ours.group, ours.tag, our_number)


def _variants_of_peers(ours: Wait, number: int, theirs: Wait, peer: int) -> list[tuple[Signature, list[int]]]:
    """Both sides, when they meet and one gives another amount than the other takes."""
    pair = [(ours.what, [number]), (theirs.what, [peer])]
    counts = [(sum(math.prod(size) for size in what.sizes), what.dtypes) for what, _ in pair]
    return pair if ours.seq == theirs.seq and counts[0] != counts[1] else []


def disagreements(ranks: Mapping[Place, Rank]) -> list[Stall]:
    """The first collective of each group in which ranks have run different things, ended or not."""
    known: dict[Group, dict[int, dict[int, Signature]]] = {}
    for rank in ranks.values():
        whole = {**rank.recent, **{(wait.group, wait.seq): wait.what for wait in rank.waits if wait.peer is None}}
        for (group, seq), what in whole.items():
            known.setdefault(group, {}).setdefault(seq, {})[rank.place[1]] = what
    found = []
    for group, by_seq in known.items():
        for seq in sorted(by_seq):
            variants = _variants(by_seq[seq])
            if variants:
                who = sorted(by_seq[seq])
                found.append(Stall((group, seq), group, seq, variants[0][0], 0.0, who, [], variants=variants))
                break
    return found
