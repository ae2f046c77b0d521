"""Who was told to step, to pause or to run to a line, and has not stopped since."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankscope.dap.messages import DapError
from rankscope.hub.entries import LINE, Breakpoint

if TYPE_CHECKING:
    from rankscope.hub.breakpoints import Wanted
    from rankscope.hub.member import Member

SHOWN_SECONDS = 0.5


@dataclass(frozen=True)
class Hold:
    """What a member was told to do, at ``since`` (the loop's time)."""

    action: str
    since: float


class Holds:
    """Keeps those members armed until they stop or are let go. Owns the breakpoints of "run to cursor"."""

    def __init__(self, wanted: Wanted) -> None:
        self.lines: dict[tuple[str, str], list[Breakpoint]] = {}
        self._wanted = wanted
        self._holds: dict[str, Hold] = {}
        self._is_telling = False

    def begin(self, member: Member, action: str) -> None:
        """A step or pause is under way: stay armed until it stops or :meth:`let_go`."""
        self._holds[member.id] = Hold(action, asyncio.get_running_loop().time())
        if not self._is_telling:
            self._is_telling = True
            asyncio.get_running_loop().call_later(SHOWN_SECONDS, self._tell)

    def _tell(self) -> None:
        """What has been under way for long is shown, again and again: whom it waits for may change."""
        fleet = self._wanted.fleet
        self._is_telling = bool(self._holds)
        if self._is_telling:
            asyncio.get_running_loop().call_later(SHOWN_SECONDS, self._tell)
            if fleet is not None and (member := fleet.members.get(next(iter(self._holds)))):
                fleet.changed(member)  # one of them: the list is told as a whole

    def of(self, member: Member) -> Hold | None:
        """What is under way."""
        return self._holds.get(member.id)

    def shown(self, member: Member) -> Hold | None:
        """What has been under way for so long that a person is to know."""
        hold = self._holds.get(member.id)
        return hold if hold and asyncio.get_running_loop().time() - hold.since >= SHOWN_SECONDS else None

    def let_go(self, member: Member) -> None:
        """The member runs on: disarmed after a short quiet unless a breakpoint wants it."""
        if self.end(member) and self._wanted.fleet is not None:
            self._wanted.fleet.changed(member)
        self._wanted.consider(member)

    def end(self, member: Member) -> bool:
        """It has stopped, or gone, and what :meth:`run_to` set for it goes; whether anything was under way."""
        for key, entries in list(self.lines.items()):
            mine = [entry for entry in entries if entry.only and member.id in entry.only]
            for entry in mine:
                if entry.only is not None:
                    entry.only.discard(member.id)
            self.lines[key] = [entry for entry in entries if entry.only]
            if not self.lines[key]:
                del self.lines[key]
            if mine and member.is_live:
                self._wanted.send_soon(member, key)
        return self._holds.pop(member.id, None) is not None

    async def run_to(self, member: Member, path: str, line: int) -> None:
        """Let an armed member stop at a line, too, until its next stop. Raises :class:`DapError` without code there."""
        key = (LINE, path)
        entries = self.lines.setdefault(key, [])
        entry = next((entry for entry in entries if entry.line == line), None)
        if entry is None:  # its request is none that an editor sends
            request = {"line": line, "until": "stopped"}
            entry = Breakpoint(self._wanted.next_id(), LINE, path, request, only=set())
            entries.append(entry)
        if entry.only is not None:
            entry.only.add(member.id)
        await self._wanted.send(member, key)
        answer = self._wanted.answer(entry, member) or {}
        if not answer.get("verified"):
            self.end(member)
            raise DapError(str(answer.get("message") or f"line {line} has no code").strip())
