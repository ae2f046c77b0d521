"""Time-outs that run on while somebody is paused: asked of every member, counted down, and what came of them."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rankscope.dap.messages import DapError

if TYPE_CHECKING:
    from rankscope.hub.fleet import Fleet
    from rankscope.hub.member import Member

WARN_SECONDS = 30.0
_PERIOD_SECONDS = 1.0
_PERIOD_SECONDS_EACH = 0.001  # many members are asked less often
_ANSWER_SECONDS = 1.0
_SAME_SECONDS = 1.5  # two readings of one deadline differ by less
_JUST_BEFORE_SECONDS = 0.2  # looked once more so long before a deadline: who is gone after it then has run out
_SEEN_SECONDS = 1.5  # one that was last seen longer before its deadline may as well have been answered
_MAX_TOLD = 100
_MAX_NAMES = 3
_MAX_TEXT = 200
_MAX_OF_ONE = 256
_MINUTES_FROM = 60


@dataclass
class _Limit:
    """One time-out of one member. ``ends`` is on the monotonic clock; ``None``: not known.

    Nobody is warned of one that ends in no error (not ``fails``).
    """

    member: Member
    what: str
    option: str
    ends: float | None
    seen_at: float
    fails: bool = True
    is_over: bool = False
    is_warned: bool = False
    is_lamented: bool = False

    def has_passed(self, now: float) -> bool:
        """Whether it has run out, if it is gone."""
        return self.ends is not None and self.ends <= now and self.seen_at >= self.ends - _SEEN_SECONDS

    def urgency(self) -> tuple[bool, float]:
        return not self.fails, math.inf if self.ends is None else self.ends

    @property
    def may_warn(self) -> bool:
        return self.fails and not (self.is_over or self.is_warned)

    def text(self, now: float) -> str:
        name = f"{self.what} of {self.member.label}"
        if self.is_over:
            return f"{name} has run out"
        hint = f" (to raise it: {self.option})" if self.option else ""
        if self.ends is None:
            return f"{name} may run out, nobody knows when{hint}"
        return f"{name} ends in {duration(self.ends - now)}{hint}"

    def described(self, now: float) -> dict[str, Any]:
        left = 0.0 if self.is_over else None if self.ends is None else max(0.0, self.ends - now)
        return {
            "what": self.what,
            "label": self.member.label,
            "member": self.member.id,
            "secondsLeft": left,
            "canRaise": bool(self.option),
            "fails": self.fails,
            "isOver": self.is_over,
            "text": self.text(now),
        }


class PauseLimits:
    """Watches as long as somebody is paused; else it does nothing. Owns that one task, :meth:`close` ends it.

    ``on_change`` is called when limits have come, gone or moved, not for the seconds that pass.
    """

    def __init__(self, fleet: Fleet, on_change: Callable[[], None]) -> None:
        self._fleet = fleet
        self._on_change = on_change
        self._limits: dict[tuple[str, str], _Limit] = {}
        self._since = 0.0
        self._until = math.inf
        self._who = ""
        self._task: asyncio.Task[None] | None = None
        fleet.listeners.append(self)

    def about(self) -> dict[str, Any]:
        """``pausedSeconds`` and ``limits``, those that fail soonest first; ``limitsLeftOut`` counts more.

        Empty when nobody is paused or no time-out runs.
        """
        if not self._limits or not self._paused():
            return {}
        now = time.monotonic()
        limits = sorted(self._limits.values(), key=_Limit.urgency)
        return {
            "pausedSeconds": now - self._since,
            "limits": [limit.described(now) for limit in limits[:_MAX_TOLD]],
            "limitsLeftOut": max(0, len(limits) - _MAX_TOLD),
        }

    def close(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()

    # --- what the fleet tells ---------------------------------------------------------------------

    def member_event(self, member: Member, event: str, body: dict[str, Any]) -> None:
        """Somebody may have stopped, or gone on as the last one."""
        del body
        if event == "continued" and not self._paused():
            self._until = min(self._until, time.monotonic())
        if event != "stopped":
            return
        if self._paused() == [member] and len(member.stopped) == 1:
            self._since = time.monotonic()
        self._until = math.inf
        if self._task is None:
            self._task = asyncio.ensure_future(self._watch())

    def member_left(self, member: Member) -> None:
        """What it waited in is over, one way or the other."""
        if self._settle(member, {}, why=f": it has {member.state}" + (f": {member.ending}" if member.ending else "")):
            self._on_change()

    def member_joined(self, member: Member) -> None:
        """Nothing: it is asked in the next round."""

    def member_changed(self, member: Member) -> None:
        """Nothing."""

    def notice(self, level: str, text: str, member: Member | None) -> None:
        """Nothing."""

    # --- watching ---------------------------------------------------------------------------------

    def _paused(self) -> list[Member]:
        return [member for member in self._fleet.select(None) if member.stopped]

    async def _watch(self) -> None:
        try:
            while (paused := self._paused()) or self._limits:
                self._who = _names(paused) or self._who
                await self._look()
                if paused:
                    await asyncio.sleep(self._patience())
                elif not self._paused():  # that look has told what ran out in the pause's last second
                    self._limits.clear()
                    self._on_change()
        finally:
            self._task = None
            self._limits.clear()

    async def _look(self) -> None:
        changes = await asyncio.gather(*(self._ask(member) for member in self._fleet.select(None)))
        self._warn()
        if any(changes):
            self._on_change()

    def _patience(self) -> float:
        """Seconds until the next look."""
        period = _PERIOD_SECONDS + _PERIOD_SECONDS_EACH * len(self._fleet.members)
        now = time.monotonic()
        ends = (limit.ends for limit in self._limits.values() if limit.fails and limit.ends is not None)
        coming = (end - _JUST_BEFORE_SECONDS - now for end in ends)
        return min([period, *(seconds for seconds in coming if seconds > 0)])

    async def _ask(self, member: Member) -> bool:
        """Whether anything is different; one that does not answer keeps what was known of it."""
        try:
            answer = await member.ask("limits", {"paused": bool(member.stopped)}, timeout=_ANSWER_SECONDS)
        except (DapError, TimeoutError, asyncio.TimeoutError):
            return False
        now = time.monotonic()
        found: dict[str, _Limit] = {}
        told = answer.get("limits")
        for raw in told[:_MAX_OF_ONE] if isinstance(told, list) else ():
            if not isinstance(raw, dict):
                continue
            left = raw.get("left")
            ends = now + left if isinstance(left, (int, float)) and math.isfinite(left) else None
            what, option = str(raw.get("what"))[:_MAX_TEXT], str(raw.get("option") or "")[:_MAX_TEXT]
            limit = _Limit(member, what, option, ends, now, bool(raw.get("fails", True)))
            other = found.get(limit.what)
            if other is None or other.ends is None or (ends is not None and ends < other.ends):
                found[limit.what] = limit
        return member.is_live and self._settle(member, found)

    def _settle(self, member: Member, found: dict[str, _Limit], why: str = "") -> bool:
        """Take in what a member waits in now; whether that is another than before."""
        now = time.monotonic()
        has_changed = False
        for key, known in list(self._limits.items()):
            if known.member is not member:
                continue
            new = found.pop(known.what, None)
            is_due = known.has_passed(min(now, self._until))
            if new is None:
                if is_due and not known.is_over:
                    known.is_over = has_changed = True
                    self._lament(known, why)
                elif not known.is_over:
                    del self._limits[key]
                    has_changed = True
                continue
            is_same = not known.is_over and _is_same(known.ends, new.ends)
            if not is_same and is_due:
                self._lament(known, ", and it has begun anew")
            known.ends, known.seen_at, known.is_over = new.ends, now, False
            has_changed = has_changed or not is_same
        for what, limit in found.items():
            self._limits[member.id, what] = limit
            has_changed = True
        return has_changed

    def _warn(self) -> None:
        now = time.monotonic()
        for limit in self._limits.values() if self._paused() else ():
            if limit.ends is not None and limit.ends - now < WARN_SECONDS and limit.may_warn:
                limit.is_warned = True
                self._fleet.notice("warning", f"{limit.text(now)} (paused: {self._who})")

    def _lament(self, limit: _Limit, why: str) -> None:
        """Say once what became of it."""
        if limit.fails and not limit.is_lamented:
            limit.is_lamented = True
            self._fleet.notice("warning", f"{limit.what} of {limit.member.label} ran out (paused: {self._who}){why}")


def _names(members: list[Member]) -> str:
    more = len(members) - _MAX_NAMES
    return ", ".join(member.label for member in members[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def _is_same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) < _SAME_SECONDS


def duration(seconds: float) -> str:
    """``45 s``, ``29 min``."""
    whole = max(0, math.ceil(seconds))
    return f"{whole} s" if whole < _MINUTES_FROM else f"{math.ceil(whole / 60)} min"
