"""The job's ranks as such: who they are, where they stand, which breakpoints they have, and their sessions.

These are the requests and events of our own that the extension's views are made of;
``extension/src/core/protocol.ts`` types them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rankscope.dap.front_base import FrontBase
from rankscope.dap.messages import DapError
from rankscope.hub import top_frames
from rankscope.hub.member import who

if TYPE_CHECKING:
    from rankscope.hub.member import Member

_RANKS_SECONDS = 0.05
_RANKS_SECONDS_EACH = 0.0002  # a long list is told less often
_BREAKPOINTS_SECONDS = 0.1
_STOP_FIELDS = ("reason", "description", "text")


class RankRequests(FrontBase):
    """Answers for the whole job, whoever is presented here. The root also tells of changes, once for a burst."""

    _ranks_timer: asyncio.TimerHandle | None = None
    _breakpoints_timer: asyncio.TimerHandle | None = None
    _told_breakpoints: list[dict[str, Any]] | None = None

    # --- who they are -----------------------------------------------------------------------------

    async def do_rankscope_ranks(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Every member of the job and how it stands; while somebody is paused, which time-outs run on."""
        del arguments
        return self._ranks_body()

    async def do_rankscope_driver_exited(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The client, which started the driver in its terminal, has seen it end with ``exitCode``."""
        self.hub.job.driver_exited(int(arguments.get("exitCode", 0)))
        return {}

    def has_session(self, name: str) -> bool:
        """Whether a front of that session is connected and ready."""
        return any(front.session == name and front.is_configured for front in self.hub.fronts)

    def _ranks_body(self) -> dict[str, Any]:
        skews = {group: asdict(skew) for group, skew in self.hub.fleet.control.together.skews.items()}
        return {"members": self._described_all(), "skews": skews, **self.hub.limits.about()}

    def _described_all(self) -> list[dict[str, Any]]:
        ready = {front.session for front in self.hub.fronts if front.session and front.is_configured}
        showers = {member: front for front in (*self.hub.fronts, self) for member in front.shown}
        return [self._described(member, ready, showers.get(member.id)) for member in self.hub.fleet.members.values()]

    def _described(self, member: Member, ready: set[str], shower: FrontBase | None) -> dict[str, Any]:
        sessions = None if self.hub.root is None else self.hub.root.sessions
        session = "" if sessions is None else sessions.name_for(member)
        stop = next(iter(member.stopped.values()), None)
        return {
            **who(member),
            "isFinal": member.facts.is_final,
            "state": member.state,
            "isArmed": member.is_armed,
            "isGreyed": member.is_greyed,
            "session": session,
            "hasSession": session in ready,
            "threadIds": [] if shower is None else shower.ids.threads.of(member.id),
            "stopped": None if stop is None else {k: stop[k] for k in _STOP_FIELDS if stop.get(k) is not None},
            "ending": member.ending,
            "heldSeconds": self.hub.fleet.crashes.held_seconds(member) if member.stopped else None,
            "stuck": self.hub.fleet.hangs.mark(member),
            "pending": self.hub.fleet.control.pending_body(member),
            "barrier": self.hub.fleet.control.barriers.waits_for(member) if member.stopped else None,
        }

    def ranks_changed(self) -> None:
        """Tell the list anew, soon."""
        if self.is_root and self._ranks_timer is None and self.is_configured:
            patience = _RANKS_SECONDS + _RANKS_SECONDS_EACH * len(self.hub.fleet.members)
            self._ranks_timer = _later(patience, self._tell_ranks)

    def _tell_ranks(self) -> None:
        self._ranks_timer = None
        self.channel.send_event("rankscope/ranksChanged", self._ranks_body())

    # --- what went wrong with them ---------------------------------------------------------------

    def finding(self, finding: dict[str, Any]) -> None:
        """Something is worth the person's attention at a line of theirs."""
        if self.is_extensions:
            path = self.hub.wanted.paths.in_client(finding["path"]) if finding["path"] else ""
            self.channel.send_event("rankscope/finding", {**finding, "path": path})

    # --- where they stand -------------------------------------------------------------------------

    async def do_rankscope_frames(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The innermost own frame of each member asked for (all: of everyone); ``late`` are those without an answer."""
        members = self.hub.fleet.members
        asked = arguments.get("members")
        wanted = list(members.values()) if asked is None else [members[name] for name in asked if name in members]
        frames, late = await top_frames.of(wanted, self.hub.wanted.paths)
        return {"frames": frames, "late": late}

    # --- their breakpoints ------------------------------------------------------------------------

    async def do_rankscope_breakpoints(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Every line breakpoint of the job, and how it stands with the members that it concerns."""
        del arguments
        return {"breakpoints": self.hub.wanted.standing.reports()}

    def status_changed(self) -> None:
        """How breakpoints stand, or how often they were hit, may be different: tell it anew, soon."""
        if self.is_root and self.is_extensions and self.is_configured and self._breakpoints_timer is None:
            self._breakpoints_timer = _later(_BREAKPOINTS_SECONDS, self._tell_breakpoints)

    def _tell_breakpoints(self) -> None:
        self._breakpoints_timer = None
        breakpoints = self.hub.wanted.standing.reports()
        if breakpoints != self._told_breakpoints:
            self._told_breakpoints = breakpoints
            self.channel.send_event("rankscope/breakpointsChanged", {"breakpoints": breakpoints})

    # --- their sessions ---------------------------------------------------------------------------

    async def do_rankscope_open_session(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Open a session that did not open by itself, or was closed; nothing when it is there or on its way."""
        name = str(arguments.get("session") or "")
        root = self.hub.root
        sessions = None if root is None else root.sessions
        live = [member for member in self.hub.fleet.members.values() if member.is_live and not member.is_greyed]
        owner = next((m for m in live if sessions is not None and name and sessions.name_for(m) == name), None)
        if sessions is None or owner is None:
            raise DapError(f"No rank that runs has the session '{name}'.", "no-such-session")
        if not self.has_session(name) and not sessions.is_awaited(name):
            sessions.reopen(name, session_label(name, owner))
            root.held_back()
        return {}

    # --- who has the focus ------------------------------------------------------------------------

    async def do_rankscope_focus(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """``{member, from?}``: let the editor look at a stopped member, and away from the one it looks at.

        Editors have no other way: they follow a ``stopped`` event, unless their focus is on a frame elsewhere.
        """
        member = self.member(str(arguments.get("member")))
        front = self.shower(member)
        if not member.stopped or front is None or not front.stops.get(member.id):
            raise DapError(f"{member.label} runs: pause it to look inside.", "not-stopped")
        focused = self.hub.fleet.members.get(str(arguments.get("from")))
        if focused is not None and focused is not member and focused.stopped:
            before = self.shower(focused)
            if before is not None and before is not front:
                before.give_focus_up(focused)
        front.take_focus(member)
        return {}

    def stop_telling(self) -> None:
        """The connection has gone."""
        for timer in (self._ranks_timer, self._breakpoints_timer):
            if timer is not None:
                timer.cancel()


def session_label(name: str, member: Member) -> str:
    """How people read a session: a group's name, or its one rank."""
    return name[: -len("/all")] if name.endswith("/all") else member.label


def _later(seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
    return asyncio.get_running_loop().call_later(seconds, call)
