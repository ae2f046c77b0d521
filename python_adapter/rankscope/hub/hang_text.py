"""Hangs in words: one sentence for a row or a notification, and a page that says what is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankscope.hub.lineup import ANY_SOURCE, Group, Place, Stall
from rankscope.hub.stall_graph import Root
from rankscope.ranks import RankFacts, write_set

if TYPE_CHECKING:
    from rankscope.hub.member import Member

_MAX_FRAMES = 12
_STATES = {"paused": "stopped by the debugger", "starting": "waiting for its breakpoints"}


@dataclass
class Seen:
    """Where a rank was seen: its innermost own frame and call as ``top`` answers, the main thread's ``stack``."""

    frame: dict[str, Any] | None = None
    stack: list[tuple[str, str, int]] = field(default_factory=list)  # name, path, line; innermost first
    is_late: bool = False

    @property
    def place(self) -> str:
        """``train.py:31 in step``; empty where it is not known."""
        if self.frame is None:
            return ""
        name = str(self.frame["name"])
        where = f"{Path(str(self.frame['path'])).name}:{self.frame['line']}"
        return where if name.startswith("<") else f"{where} in {name}"


class Words:
    """Names ranks as people know them. ``member_at`` gives a place's member, ``seen`` what was seen of it."""

    def __init__(self, member_at: Callable[[Place], Member | None], seen: Mapping[Place, Seen]) -> None:
        self._member_at = member_at
        self._seen = seen

    def places(self) -> list[dict[str, Any]]:
        """Each rank's own line and the call that it is in, as far as that was seen."""
        found = []
        for place, seen in self._seen.items():
            member, frame = self._member_at(place), seen.frame
            if member is not None and frame is not None:
                call = f"in {frame['call']}" if frame.get("call") else ""
                where = {"path": str(frame["path"]), "line": int(frame["line"])}
                found.append({"label": member.label, **where, "text": call})
        return found

    def culprits(self, root: Root) -> str:
        """The set of those who differ, or are missing; groups are named."""
        stall = root.stalls[0]
        numbers = stall.variants[-1][1] if stall.variants else stall.missing
        members = (self._member_at((stall.group.world, number)) for number in numbers)
        facts = [member.facts for member in members if member is not None]
        return write_set(facts, [*facts, RankFacts(rank=0)])

    # --- parts ------------------------------------------------------------------------------------

    def names(self, group: Group, numbers: Sequence[int]) -> str:
        """``world 0-2``, ``critic 1``, ``rank 5`` for one that never joined."""
        by_group: dict[str, list[Member]] = {}
        others: list[str] = []
        for number in numbers:
            member = self._member_at((group.world, number))
            if member is None:
                others.append(f"rank {number} (which RankScope does not know)")
            elif member.facts.rank is None:
                others.append(member.label)
            else:
                by_group.setdefault(member.facts.group, []).append(member)
        named = [
            members[0].label if len(members) == 1 else f"{name} {write_set(m.facts for m in members)}".lstrip()
            for name, members in by_group.items()
        ]
        return _and([*named, *others])

    @staticmethod
    def what(stall: Stall) -> str:
        """``all_reduce (#7 of default_pg)``, ``recv (#2 from rank 0)``."""
        if stall.is_peer:
            side = "to" if stall.what.op == "send" else "from"
            whom = "any rank" if stall.peer == ANY_SOURCE else f"rank {stall.peer}"
            tag = f", tag {stall.tag}" if stall.tag else ""
            return f"{stall.what.op} (#{stall.seq} {side} {whom}{tag})"
        return f"{stall.what.op or 'a collective'} (#{stall.seq} of {name_of(stall.group)})"

    def waits(self, stall: Stall) -> str:
        """``world 0-2 wait in all_reduce (#7 of default_pg) for world 3``."""
        who = self.names(stall.group, stall.waiting)
        verb = "waits" if len(stall.waiting) == 1 else "wait"
        for_whom = self.names(stall.group, stall.missing) if stall.peer != ANY_SOURCE else ""
        return f"{who} {verb} in {self.what(stall)}" + (f" for {for_whom}" if for_whom else "")

    def sentence(self, root: Root) -> str:
        """One sentence that says what hangs and why."""
        stall = root.stalls[0]
        if root.is_cycle:
            return "deadlock: " + "; ".join(self.waits(each) for each in root.stalls)
        if stall.mismatch:
            return self._mismatch(stall)
        if stall.missing:
            return f"{self.waits(stall)}, {self._why(stall)}".removesuffix(", ")
        if stall.ahead:
            return f"{self.waits(stall)}, which {self.names(stall.group, stall.ahead)} left behind"
        return f"{self.waits(stall)}: all are there, and it does not end"

    def _mismatch(self, stall: Stall) -> str:
        (most, those), *rest = stall.variants
        text = " and ".join(f"{self.names(stall.group, who)} {_run(who)} {what}" for what, who in rest)
        where = f"#{stall.seq} of {name_of(stall.group)}"
        return (
            f"{stall.mismatch} mismatch: {text} where {self.names(stall.group, those)} {_run(those)} {most} ({where})"
        )

    def _why(self, stall: Stall) -> str:
        """What those who are missing do, when they all do the same."""
        does = {self._does((stall.group.world, number)) for number in stall.missing}
        text = does.pop() if len(does) == 1 else ""
        return f"{'which' if len(stall.missing) == 1 else 'each of which'} {text}" if text else ""

    def _does(self, place: Place) -> str:
        member, seen = self._member_at(place), self._seen.get(place, Seen())
        if member is None:
            return ""
        if member.state in ("exited", "crashed", "lost"):
            what = "is lost" if member.state == "lost" else f"has {member.state}"
            return f"{what} ({member.ending})" if member.ending else what
        call = str((seen.frame or {}).get("call") or "")
        does = _STATES.get(member.state) or (f"in {call}" if call else "running")
        return f"is {does}" + (f" at {seen.place}" if seen.place else ", and does not answer" if seen.is_late else "")

    # --- the rows ---------------------------------------------------------------------------------

    def mark_of_waiting(self, stall: Stall) -> str:
        """``waits for world 3 in all_reduce (#7 of default_pg)``."""
        for_whom = self.names(stall.group, stall.missing) if stall.missing else ""
        return f"waits for {for_whom} in {self.what(stall)}" if for_whom else f"hangs in {self.what(stall)}"

    def mark_of_missing(self, stall: Stall) -> str:
        """``3 wait for it in all_reduce (#7 of default_pg)``."""
        count = len(stall.waiting)
        return f"{count} {'waits' if count == 1 else 'wait'} for it in {self.what(stall)}"

    # --- the page ---------------------------------------------------------------------------------

    def page(self, root: Root, now: float, behind: Sequence[Stall] = ()) -> Iterator[str]:
        """All that is known of one hang, line by line."""
        yield self.sentence(root)
        for stall in root.stalls:
            yield ""
            yield f"{stall.what} · #{stall.seq} · {name_of(stall.group)} ({_spans(stall.group)})"
            yield f"  for {max(0.0, now - stall.since):.1f} s"
            if stall.variants:
                for what, who in stall.variants:
                    yield f"  {self.names(stall.group, who)} {_run(who)} {what}:"
                    yield from self._stacks(stall.group, who)
                continue
            yield f"  waiting: {self.names(stall.group, stall.waiting)}"
            yield from self._stacks(stall.group, stall.waiting)
            if stall.missing:
                yield f"  not there: {self.names(stall.group, stall.missing)}"
                yield from self._stacks(stall.group, stall.missing)
        if behind:
            yield ""
            yield "behind it:"
            yield from (f"  {self.waits(stall)}" for stall in behind)

    def _stacks(self, group: Group, numbers: Sequence[int]) -> Iterator[str]:
        """Where these ranks are, those together that are in the same place."""
        alike: dict[tuple[str, tuple[tuple[str, str, int], ...]], list[int]] = {}
        for number in numbers:
            place = (group.world, number)
            alike.setdefault((self._does(place), tuple(self._seen.get(place, Seen()).stack)), []).append(number)
        for (does, stack), who in alike.items():
            yield f"    {self.names(group, who)}: {does.removeprefix('is ')}".removesuffix(": ")
            for name, path, line in stack[:_MAX_FRAMES]:
                yield f"      {name}  {path}:{line}"
            if len(stack) > _MAX_FRAMES:
                yield f"      … {len(stack) - _MAX_FRAMES} more frames"


def name_of(group: Group) -> str:
    """What people call a process group."""
    return group.desc or f"group {group.name}"


def _spans(group: Group) -> str:
    first, last = group.ranks[:1], group.ranks[-1:]
    is_whole = bool(first) and last[0] - first[0] + 1 == len(group.ranks)
    text = f"{first[0]}-{last[0]}" if is_whole and len(group.ranks) > 1 else ",".join(map(str, group.ranks))
    return f"ranks {text}"


def _run(who: Sequence[int]) -> str:
    return "runs" if len(who) == 1 else "run"


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
