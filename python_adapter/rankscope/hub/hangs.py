"""Who hangs whom: what the ranks tell of their collectives, judged over time, told as findings.

Agents tell when they begin to wait and when they go on, so a job that gets on costs nothing here. Who is missing is
asked only when a hang is due, or when a rank is ahead of others, and then everyone involved where it is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rankscope.dap.messages import DapError
from rankscope.hub.hang_ranks import HangRanks
from rankscope.hub.hang_text import Seen, Words
from rankscope.hub.hang_watch import Told, Watch
from rankscope.hub.lineup import Place, Stall, disagreements, line_up
from rankscope.hub.stall_graph import Root, edges, reachable, roots
from rankscope.wire import messages as m

if TYPE_CHECKING:
    from rankscope.hub.fleet import Fleet
    from rankscope.hub.member import Member

_BURST_SECONDS = 0.1
_ASK_SECONDS = 1.0
_MAX_SEEN = 64  # places of one hang whose stacks are asked for
_MAX_FRAMES = 100
_MAX_TOLD = 16  # at a time
_LATE = (DapError, TimeoutError, asyncio.TimeoutError)


class Hangs:
    """Judges what the members tell. Owns a timer and the tasks that ask; :meth:`close` ends them.

    ``after``: seconds without progress that make a hang; with 0 nothing is told by itself.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._known = HangRanks()
        self._watch = Watch(30.0)
        self._marks: dict[str, str] = {}
        self._asked: set[Any] = set()
        self._stalls: list[Stall] | None = None
        self._unreadable: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._is_judging = False
        self._is_asking = self._has_failures = False
        self._tasks: set[asyncio.Task[None]] = set()
        fleet.listeners.append(self)

    @property
    def after(self) -> float:
        """Seconds without progress that make a hang; 0: none is told."""
        return self._watch.after

    @after.setter
    def after(self, seconds: float) -> None:
        self._watch.after = seconds

    # --- what members tell ------------------------------------------------------------------------

    def handle(self, member: Member, message: m.Waits) -> None:
        """A member waits in something else than before, or in nothing."""
        self._take(member, message)
        self._soon()

    def _take(self, member: Member, news: m.Waits | dict[str, Any]) -> None:
        self._stalls = None
        try:
            if isinstance(news, m.Waits):
                self._known.told(member, news)
            else:
                self._known.answered(member, news)
        except ValueError as e:
            if member.id not in self._unreadable:
                self._unreadable.add(member.id)
                self._fleet.notice("warning", f"{e}: hangs that it is part of are not found", member)

    def failed(self) -> None:
        """Somebody fails. Where ranks disagree that may be why: ask them while they are there."""
        self._has_failures = True
        if self.after and not self._is_asking:
            self._start(self._judge_failures())

    def forget(self) -> None:
        """Another run begins."""
        self._known = HangRanks()
        self._watch = Watch(self.after)
        self._marks.clear()
        self._asked.clear()
        self._unreadable.clear()
        self._stalls = None

    def close(self) -> None:
        """Judge no more, but what ended with the job."""
        for told in self._watch.look(self._line_up(), self._known.ranks, time.monotonic()).ended:
            self._note_end(told)
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()

    # --- what others ask --------------------------------------------------------------------------

    def mark(self, member: Member) -> str | None:
        """What hangs at a member, in a few words; ``None``: nothing does."""
        return self._marks.get(member.id)

    def waits_for(self, member: Member) -> list[Member]:
        """Whom a member's collective, send or receive waits for, as far as the agents have told; maybe nobody."""
        place = self._known.place_of(member)
        if place is None:
            return []
        awaited: list[Place] = []
        for stall in self._line_up():
            world = stall.group.world
            if world == place[0] and place[1] in stall.waiting:
                awaited += [(world, number) for number in stall.missing]
            elif world == place[0] and place[1] in stall.ahead:
                awaited += [(world, number) for number in stall.waiting]
        members = (self._known.member_at(place) for place in dict.fromkeys(awaited))
        return [other for other in members if other is not None]

    async def why(self) -> dict[str, Any]:
        """What waits for what at this moment, however short: ``text`` is a page, ``findings`` a sentence each."""
        await self.ask(self._fleet.select(None))
        stalls = self._line_up()
        found = roots(stalls)
        seen = await self._see(found)
        words = Words(self._known.member_at, seen)
        now = time.monotonic()
        pages = [list(words.page(root, now, self._behind(root, stalls))) for root in found]
        sentences = [words.sentence(root) for root in found]
        if not found:
            pages = [["Nothing hangs: no rank waits in a collective, a send or a receive."]]
        groups = [self._described(root, words, now) for root in found]
        return {"text": "\n\n".join("\n".join(page) for page in pages), "groups": groups, "findings": sentences}

    # --- judging ----------------------------------------------------------------------------------

    def _soon(self, seconds: float = _BURST_SECONDS) -> None:
        """Judge within so many seconds, once for a burst."""
        at = time.monotonic() + seconds
        if self._timer is not None and self._timer_at <= at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = asyncio.get_running_loop().call_later(seconds, self._due)

    def _due(self) -> None:
        self._timer = None
        if self._is_judging:
            self._soon()
        elif self.after:
            self._start(self._judge())

    def _line_up(self) -> list[Stall]:
        if self._stalls is None:
            self._stalls = line_up(self._known.refresh())
        return self._stalls

    async def _judge(self) -> None:
        self._is_judging = True
        try:
            news = self._watch.look(self._line_up(), self._known.ranks, time.monotonic())
            ended = news.ended
            doubtful = [stall for root in news.due for stall in root.stalls]
            parted = [stall for stall in self._line_up() if stall.ahead and stall.key not in self._asked]
            self._asked.update(stall.key for stall in parted)
            if await self._ask_about([*doubtful, *parted]):
                news = self._watch.look(self._line_up(), self._known.ranks, time.monotonic())
                ended += news.ended
            notes = [(root, self._watch.note(root)) for root in news.due if not self._fleet.has_ended]
            await asyncio.gather(*(self._tell(root, told) for root, told in notes[:_MAX_TOLD]))
            if notes[_MAX_TOLD:]:
                self._fleet.notice("warning", f"and {len(notes) - _MAX_TOLD} more hangs at the same time")
            for told in ended:
                self._tell_end(told)
            self._set_marks(news.stuck)
            if news.next is not None:
                self._soon(max(0.0, news.next - time.monotonic()))
        finally:
            self._is_judging = False

    async def _judge_failures(self) -> None:
        """The ranks whose connections broke, and those that still wait, know what they have run."""
        self._is_asking = True
        try:
            while self._has_failures:
                self._has_failures = False
                await self.ask(self._fleet.select(None))
                for stall in disagreements(self._known.refresh()):
                    root = Root([stall])
                    if self._watch.note_mismatch(root):
                        await self._tell(root, Told(root, []))
        finally:
            self._is_asking = False

    async def _ask_about(self, stalls: Sequence[Stall]) -> bool:
        """Ask who knows more of these stalls; whether there was anybody to ask."""
        places: dict[Place, None] = {}
        for stall in stalls:
            numbers = (*stall.unsure, *(stall.waiting if stall.ahead else ()))
            places.update(dict.fromkeys((stall.group.world, number) for number in numbers))
        members = [member for member in map(self._known.member_at, places) if member is not None]
        await self.ask(members)
        return bool(members)

    async def ask(self, members: Iterable[Member]) -> None:
        """Ask members what they are in; bounded, and who does not answer keeps what it has told."""

        async def one(member: Member) -> None:
            try:
                self._take(member, await member.ask("collectives", {}, timeout=_ASK_SECONDS))
            except _LATE:
                pass  # what it told before counts

        await asyncio.gather(*(one(member) for member in members))

    # --- telling ----------------------------------------------------------------------------------

    async def _see(self, found: Iterable[Root]) -> dict[Place, Seen]:
        """Where the ranks of these roots are; of each side of a stall the first ones."""
        places: dict[Place, None] = {}
        for root in found:
            for stall in root.stalls:
                half = _MAX_SEEN // 2
                numbers = (*stall.missing[:half], *stall.waiting[: _MAX_SEEN - min(half, len(stall.missing))])
                places.update(dict.fromkeys((stall.group.world, number) for number in numbers))
        seen: dict[Place, Seen] = {}

        async def one(place: Place) -> None:
            member = self._known.member_at(place)
            if member is not None:
                seen[place] = await self._where(member)

        await asyncio.gather(*(one(place) for place in places))
        return seen

    async def _where(self, member: Member) -> Seen:
        in_client = self._fleet.wanted.paths.in_client
        try:
            top, stacks = await asyncio.gather(
                member.ask("top", {}, timeout=_ASK_SECONDS), member.ask("stacks", {}, timeout=_ASK_SECONDS)
            )
            frame = top.get("frame")
            if frame is not None:
                frame = {**frame, "path": in_client(str(frame["path"]))}
            main: list[dict[str, Any]] = next(
                (thread["frames"] for thread in stacks["threads"] if thread["is_main"]), []
            )
            stack = [(str(f["name"]), in_client(str(f["path"])), int(f["line"])) for f in main[:_MAX_FRAMES]]
        except _LATE:
            return Seen(is_late=member.is_live)
        except (KeyError, TypeError, ValueError):
            return Seen(is_late=True)
        return Seen(frame, stack)

    async def _tell(self, root: Root, told: Told) -> None:
        """A hang is a finding: with the lines and stacks of both sides."""
        seen = await self._see([root])
        words = Words(self._known.member_at, seen)
        now = time.monotonic()
        place = self._culprit(root)
        member = self._known.member_at(place)
        frame = seen.get(place, Seen()).frame or {}
        text = words.sentence(root)
        told.finding = self._fleet.findings.add(
            {
                "kind": "mismatch" if root.mismatch else "hang",
                "severity": "error",
                "at": time.time(),
                "member": "" if member is None else member.id,
                "label": "" if member is None else member.label,
                "path": frame.get("path"),
                "line": int(frame.get("line") or 0),
                "name": frame.get("name"),
                "text": text,
                "ranks": words.culprits(root),
                "details": self._described(root, words, now)
                | {"text": "\n".join(words.page(root, now, self._behind(root, self._line_up())))}
                | {"places": words.places()},
            }
        )
        self._fleet.notice("failure", text)

    def _tell_end(self, told: Told) -> None:
        """What hung goes on: its finding says so."""
        self._fleet.notice("info", f"a hang has ended by itself: {self._note_end(told)}")

    def _note_end(self, told: Told) -> str:
        text = f"resolved after {told.seconds:.0f} s"
        self._fleet.findings.change(told.finding, resolved=told.seconds, how=text)
        return text

    def _culprit(self, root: Root) -> Place:
        """Whose line the finding names: the one that differs, else the first that is missing, else one that waits."""
        stall = root.stalls[0]
        odd = stall.variants[-1][1] if stall.variants else []
        for number in (*odd, *stall.missing):
            if self._known.member_at((stall.group.world, number)) is not None:
                return stall.group.world, number
        return stall.group.world, stall.waiting[0]

    @staticmethod
    def _behind(root: Root, stalls: Sequence[Stall]) -> list[Stall]:
        """The stalls that wait for this one in the end."""
        graph = edges(stalls)
        keys = root.key
        return [
            stall
            for at, stall in enumerate(stalls)
            if stall.key not in keys and any(stalls[other].key in keys for other in reachable(graph, [at]))
        ]

    def _described(self, root: Root, words: Words, now: float) -> dict[str, Any]:
        stall = root.stalls[0]
        return {
            "text": words.sentence(root),
            "isDeadlock": root.is_cycle,
            "mismatch": root.mismatch,
            "seconds": round(max(0.0, now - root.since), 1) if root.since else 0.0,
            "stalls": [
                {
                    "group": each.group.name,
                    "desc": each.group.desc,
                    "op": each.what.op,
                    "seq": each.seq,
                    "peer": each.peer,
                    "waiting": self._ids(each, each.waiting),
                    "missing": self._ids(each, each.missing),
                    "variants": [{"what": str(what), "members": self._ids(each, who)} for what, who in each.variants],
                }
                for each in root.stalls
            ],
            "world": stall.group.world,
        }

    def _ids(self, stall: Stall, numbers: Iterable[int]) -> list[str]:
        members = (self._known.member_at((stall.group.world, number)) for number in numbers)
        return [member.id for member in members if member is not None]

    def _set_marks(self, stuck: Sequence[Stall]) -> None:
        """Mark the rows of those who hang, and of those whom they wait for."""
        words = Words(self._known.member_at, {})
        marks: dict[str, str] = {}
        for stall in stuck:
            marks.update(dict.fromkeys(self._ids(stall, stall.missing), words.mark_of_missing(stall)))
        for stall in stuck:
            marks.update(dict.fromkeys(self._ids(stall, stall.waiting), words.mark_of_waiting(stall)))
            for what, who in stall.variants[1:]:
                marks.update(dict.fromkeys(self._ids(stall, who), f"runs {what}, which others do not (#{stall.seq})"))
        changed = [name for name in {*marks, *self._marks} if marks.get(name) != self._marks.get(name)]
        self._marks = marks
        for name in changed:
            if name in self._fleet.members:
                self._fleet.changed(self._fleet.members[name])

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- a fleet listener -------------------------------------------------------------------------

    def member_left(self, member: Member) -> None:
        """Who has ended waits no more, and may be waited for."""
        if self._known.place_of(member) is not None:
            self._stalls = None
            self._soon()
            if member.state == "crashed":
                self.failed()

    def member_event(self, member: Member, event: str, body: dict[str, Any]) -> None:
        """Who is stopped hangs nobody."""
        del body
        if event in ("stopped", "continued") and self._known.place_of(member) is not None:
            self._stalls = None
            self._soon()

    def member_joined(self, member: Member) -> None: ...

    def member_changed(self, member: Member) -> None: ...

    def notice(self, level: str, text: str, member: Member | None) -> None: ...
