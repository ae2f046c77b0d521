"""What the members have told of their process groups, by place: a world of the job and a rank's number in it."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rankscope.hub.lineup import Group, Place, Rank, Signature, Wait
from rankscope.wire import messages as m

if TYPE_CHECKING:
    from rankscope.hub.member import Member

_MAX_RANKS = 1 << 17
_MAX_TENSORS = 16
_MAX_TEXT = 200


class HangRanks:
    """Owner of what is known of the places. Of a place's members the latest counts."""

    def __init__(self) -> None:
        self.ranks: dict[Place, Rank] = {}
        self._member_at: dict[Place, Member] = {}
        self._place_of: dict[str, Place] = {}

    def told(self, member: Member, message: m.Waits) -> None:
        """A member tells what it waits in now. Raises ``ValueError`` for what cannot be read."""
        rank = self._rank(member, message.world, message.rank)
        now = time.monotonic()
        try:
            rank.waits = tuple(_wait(rank.place[0], raw, now) for raw in message.waits)
        except _UNREADABLE as e:
            rank.waits = ()
            raise ValueError("it told of its collectives what cannot be read") from e
        for wait in rank.waits:
            if wait.peer is None:
                if wait.seq < rank.entered.get(wait.group, 0):
                    rank.recent.clear()  # the group was made anew
                rank.entered[wait.group] = wait.seq

    def answered(self, member: Member, body: Mapping[str, Any]) -> None:
        """A member's answer to ``collectives``. Raises ``ValueError`` for what cannot be read."""
        if not body.get("groups"):
            return
        try:
            rank = self._rank(member, str(body["world"]), int(body["rank"]))
            by_name = {}
            rank.recent.clear()
            rank.counts.clear()
            for raw in body["groups"]:
                group = by_name[str(raw["group"])] = _group(rank.place[0], raw)
                rank.entered[group] = int(raw["entered"])
                for seq, op, sizes, dtypes in raw["recent"]:
                    rank.recent[group, int(seq)] = _signature(op, sizes, dtypes)
            for kind, name, peer, tag, count in body["counts"]:
                if name in by_name:
                    rank.counts[str(kind), by_name[name], int(peer), int(tag)] = int(count)
        except _UNREADABLE as e:
            raise ValueError("it told of its collectives what cannot be read") from e

    def member_at(self, place: Place) -> Member | None:
        """Who has that place, or had it last."""
        return self._member_at.get(place)

    def place_of(self, member: Member) -> Place | None:
        """A member's place; ``None`` while it is in no world."""
        return self._place_of.get(member.id)

    def refresh(self) -> dict[Place, Rank]:
        """Every place, with the state that its member has now."""
        for place, rank in self.ranks.items():
            rank.state = self._member_at[place].state
        return self.ranks

    def _rank(self, member: Member, world: str, number: int) -> Rank:
        if not 0 <= number < _MAX_RANKS:
            raise ValueError(f"it says that it is rank {number} of its world")
        place = (world or member.facts.group, number)
        if self._place_of.get(member.id) != place or self._member_at.get(place) is not member:
            old = self._place_of.get(member.id)
            if old is not None and self._member_at.get(old) is member:
                del self.ranks[old], self._member_at[old]
            self._place_of[member.id] = place
            self._member_at[place] = member
            self.ranks[place] = Rank(place, member.state)
        return self.ranks[place]


_UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, IndexError)


def _wait(world: str, raw: Mapping[str, Any], now: float) -> Wait:
    peer = raw.get("peer")
    return Wait(
        _group(world, raw),
        int(raw["seq"]),
        _signature(raw["op"], raw["sizes"], raw["dtypes"]),
        now - max(0.0, float(raw["age"])),
        None if peer is None else int(peer),
        int(raw.get("tag") or 0),
    )


def _group(world: str, raw: Mapping[str, Any]) -> Group:
    return Group(world, str(raw["group"])[:_MAX_TEXT], _numbers(str(raw["ranks"])), str(raw["desc"])[:_MAX_TEXT])


def _signature(op: Any, sizes: Any, dtypes: Any) -> Signature:
    kept = tuple(tuple(int(each) for each in size) for size in sizes[:_MAX_TENSORS])
    return Signature(str(op)[:_MAX_TEXT], kept, tuple(str(each)[:_MAX_TEXT] for each in dtypes[:_MAX_TENSORS]))


@functools.lru_cache(maxsize=4096)
def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of a rank set such as ``0-6,8-62:2``. Raises ``ValueError``."""
    found: list[int] = []
    for part in text.split(",") if text else ():
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        stretch = range(int(first), int(last or first) + 1, int(step or 1))
        if len(found) + len(stretch) > _MAX_RANKS:
            raise ValueError("a group of too many ranks")
        found += stretch
    return tuple(sorted(found))
