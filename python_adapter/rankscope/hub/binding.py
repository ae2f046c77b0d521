"""One armed member's share of the wanted table: what was sent, what its debugpy answered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankscope.hub.breakpoints import Wanted
    from rankscope.hub.entries import Breakpoint
    from rankscope.hub.member import Member

_EXCLUDED = "excluded by filters"
_BREAK_MODES = {"raised": "always", "userUnhandled": "userUnhandled"}


class Binding:
    """Sends what is ``dirty``, one request at a time, always the table's state of that moment.

    ``answers`` maps a table id to debugpy's answer, with the line in the client's file.
    """

    def __init__(self, wanted: Wanted, member: Member) -> None:
        self.dirty: set[tuple[str, str]] = set()
        self.answers: dict[int, dict[str, Any]] = {}
        self._early: set[int] = set()
        self._wanted = wanted
        self._member = member
        self._lock = asyncio.Lock()
        self._places: dict[str, list[str]] = {}
        self._local: dict[int, int] = {}
        self._has: set[str] = set()

    def keys(self) -> list[tuple[str, str]]:
        """What the member has from us: it must be sent again even when the table has nothing of it any more."""
        return [("line", path) for path in self._places] + [(kind, "") for kind in self._has]

    def bound_lines(self) -> list[tuple[int, str, int]]:
        """The table id, the member's path and the line of every line breakpoint that is bound."""
        return [
            (entry.id, place, int(answer.get("line") or entry.line))
            for path, places in self._places.items()
            for entry in self._wanted.entries("line", path)
            if (answer := self.answers.get(entry.id)) is not None and answer.get("verified")
            for place in places
        ]

    async def flush(self) -> None:
        """Send until nothing is dirty. Raises :class:`DapError` or ``TimeoutError``; what failed stays dirty."""
        async with self._lock:
            while self.dirty:
                key = min(self.dirty)
                self.dirty.discard(key)
                try:
                    await self._send(*key)
                except BaseException:
                    self.dirty.add(key)
                    raise

    async def _send(self, kind: str, path: str) -> None:
        if kind == "line":
            await self._send_lines(path)
            return
        entries = [entry for entry in self._wanted.entries(kind) if entry.concerns(self._member)]
        if kind == "exception":
            entries = [entry for entry in entries if self._is_thought_in(entry)]
            for entry in entries:
                self.answers[entry.id] = {"verified": True}
            entries = [entry for entry in entries if entry.arms]  # the agent itself sees what nothing catches
        if not entries and kind not in self._has:
            return
        if kind == "function":
            await self._send_functions(entries)
        else:
            await self._send_exceptions(entries)
        if entries:
            self._has.add(kind)
        else:
            self._has.discard(kind)

    def _is_thought_in(self, entry: Breakpoint) -> bool:
        """As far as is known now. An exception filter has no condition that could test it in the process."""
        ranks = entry.condition.ranks
        return ranks is None or ranks.contains(self._member.facts.with_changes(is_final=True)) is True

    async def _send_lines(self, path: str) -> None:
        entries = self._concerned(path)
        before = self._places.pop(path, [])
        if entries:
            places = await self._wanted.paths.in_member(self._member, path)
            entries = self._concerned(path)  # asking took a moment
        else:
            places = []
        answers = [await self._set(place, entries) for place in places]
        if any(_EXCLUDED in str(answer.get("message")) for per_place in answers for answer in per_place):
            # debugpy reads its rules at attach, and attaching once more does no harm, even while stopped.
            self._wanted.installed.add(path)
            await self._member.debug("attach", self._wanted.attach_arguments(self._member))
            answers = [await self._set(place, entries) for place in places]
        for place in before:
            if place not in places:
                await self._set(place, [])
        if places:
            self._places[path] = places
        for at, entry in enumerate(entries):
            self._take(entry, [per_place[at] for per_place in answers if at < len(per_place)])

    def _concerned(self, path: str) -> list[Breakpoint]:
        return [entry for entry in self._wanted.entries("line", path) if entry.concerns(self._member)]

    async def _set(self, place: str, entries: list[Breakpoint]) -> list[dict[str, Any]]:
        body = await self._member.debug(
            "setBreakpoints",
            {"source": {"path": place}, "breakpoints": [self._for_debugpy(entry) for entry in entries]},
        )
        answers: list[dict[str, Any]] = body.get("breakpoints") or []
        return answers

    def _for_debugpy(self, entry: Breakpoint) -> dict[str, Any]:
        request: dict[str, Any] = {"line": entry.line} if entry.kind == "line" else {"name": entry.where}
        ranks = entry.condition.ranks
        is_sure = ranks is None or ranks.contains(self._member.facts) is True
        condition = entry.condition.in_member(f"{entry.kind}:{entry.id}", is_rank_sure=is_sure)
        if condition:
            request["condition"] = condition
        if entry.log:
            request["logMessage"] = entry.log
        return request

    def _take(self, entry: Breakpoint, answers: list[dict[str, Any]]) -> None:
        """Keep the best answer, and know debugpy's ids of it again."""
        for answer in answers:
            if isinstance(answer.get("id"), int):
                self._local[answer["id"]] = entry.id
                if answer["id"] in self._early:
                    self._early.discard(answer["id"])
                    self._wanted.standing.stopped(self._member, [entry.id])
                    self._wanted.tell()
        best = next((answer for answer in answers if answer.get("verified")), answers[0] if answers else {})
        self.answers[entry.id] = best

    async def _send_functions(self, entries: list[Breakpoint]) -> None:
        body = await self._member.debug(
            "setFunctionBreakpoints", {"breakpoints": [self._for_debugpy(entry) for entry in entries]}
        )
        for entry, answer in zip(entries, body.get("breakpoints") or [], strict=False):
            self._take(entry, [answer])

    async def _send_exceptions(self, entries: list[Breakpoint]) -> None:
        if any(entry.names for entry in entries):
            options = [
                {
                    "path": [
                        {"names": ["Python Exceptions"]},
                        *([{"names": list(entry.names)}] if entry.names else []),
                    ],
                    "breakMode": _BREAK_MODES[entry.where],
                }
                for entry in entries
            ]
            await self._member.debug("setExceptionBreakpoints", {"filters": [], "exceptionOptions": options})
        else:
            filters = list(dict.fromkeys(entry.where for entry in entries))
            await self._member.debug("setExceptionBreakpoints", {"filters": filters})

    def changed(self, answer: dict[str, Any]) -> None:
        """debugpy has changed its mind about one of its ids."""
        entry = self._local.get(answer.get("id", -1))
        if entry is not None:
            self.answers[entry] = {**self.answers.get(entry, {}), **answer}

    def hit(self, ids: Iterable[int]) -> None:
        """It has stopped at these ids of debugpy's; those unknown belong to an answer that is not taken yet."""
        self._early.update(local for local in ids if local not in self._local)

    def entry_of(self, local: int) -> int | None:
        """The table id of debugpy's id."""
        return self._local.get(local)
