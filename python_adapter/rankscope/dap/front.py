"""A front: one DAP client of the hub, presenting a set of ranks as threads.

The root front is the job: it launches, holds the breakpoints, and presents the driver
and whoever has no session of its own. A child front presents the members of one rank
set; it is the connection whose ``attach`` names a session.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankscope.dap.front_compare import CompareRequests
from rankscope.dap.front_control import ControlRequests
from rankscope.dap.front_hangs import HangRequests
from rankscope.dap.front_ranks import RankRequests, session_label
from rankscope.dap.front_stacks import StackRequests
from rankscope.dap.front_stops import Stops
from rankscope.dap.messages import CAPABILITIES, SHOW_LOG, DapError
from rankscope.dap.progress import JoinProgress
from rankscope.dap.sessions import Sessions
from rankscope.dap.token_guard import TokenGuard
from rankscope.errors import RankSetError, UserError
from rankscope.hub.barriers import BARRIER_EVENT
from rankscope.hub.settings import LaunchSettings
from rankscope.ranks import RankSet

if TYPE_CHECKING:
    from rankscope.dap.channel import Channel
    from rankscope.dap.front_base import HubOfFront
    from rankscope.hub.member import Member

EXTENSION_MARK = "__extension"
_CONFIGURE_SECONDS = 60.0
_LEAVE_SECONDS = 10.0
_HELD_BACK_SECONDS = 15.5


class Front(CompareRequests, ControlRequests, Stops, RankRequests, StackRequests, HangRequests):
    """Serves one connection until it closes. Listens to the fleet and the wanted table meanwhile."""

    def __init__(self, channel: Channel, hub: HubOfFront, token: str = "") -> None:
        super().__init__(channel, hub)
        self._handler = TokenGuard(self, token) if token else self
        self._ranks: RankSet | None = None
        self._progress = JoinProgress(channel, is_supported=False)
        self._configured = asyncio.Event()
        self._has_launched = False

    @property
    def supports_run_in_terminal(self) -> bool:
        """Whether the client can start the job in a terminal of its own."""
        return bool(self.client.get("supportsRunInTerminalRequest"))

    @property
    def tells_driver_exit(self) -> bool:
        """Whether the client, having started the driver in its terminal, tells us of its end by itself."""
        return bool(self.client.get("tellsDriverExit"))

    async def serve(self) -> None:
        """Serve until the connection has closed."""
        self.hub.fleet.listeners.append(self)
        self.hub.wanted.listeners.append(self._table_changed)
        try:
            await self.channel.serve(self._handler)
        finally:
            self.hub.fleet.listeners.remove(self)
            self.hub.wanted.listeners.remove(self._table_changed)
            if self.sessions is not None:
                self.sessions.close()
            self.is_configured = False
            self.stop_telling()
            self.hub.front_closed(self)
            if self.hub.root is not None and self.hub.root is not self:
                self.hub.root.present_all()
                self.hub.root.ranks_changed()

    # --- life -------------------------------------------------------------------------------------

    async def do_initialize(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """What we can do."""
        self.client = arguments
        return CAPABILITIES

    async def do_launch(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Check the arguments, take the client's breakpoints, then start the job."""
        self._heed_mark(arguments)
        if self._of_session(arguments):
            return await self._attach_child()
        settings = LaunchSettings.parse(arguments, is_launch=True)
        if self.hub.root is not None:
            raise UserError("already-launched", "This hub has a root session already.", "Start another hub.")
        self._has_launched = True
        self._become_root(settings)
        try:
            await self._take_configuration()
            await self.hub.launch(settings, self)
        except (UserError, DapError, TimeoutError):
            self.job_ended(None)
            raise
        return {}

    async def do_attach(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Join the job as one of its sessions, or as the root of a job that runs already.

        A root that was there steps back, with its breakpoints, until this one leaves.
        """
        self._heed_mark(arguments)
        if self._of_session(arguments):
            return await self._attach_child()
        settings = LaunchSettings.parse(arguments, is_launch=False)
        self._become_root(settings)
        await self._take_configuration()
        if settings.record:
            await self.hub.open_record(settings.record, Path(settings.cwd or Path.cwd()))
        self.present_all()
        return {}

    def _heed_mark(self, arguments: dict[str, Any]) -> None:
        """Our extension marks its launch and attach arguments: ``initialize`` is sent by VS Code itself."""
        is_of_root = bool(arguments.get("session")) and self.hub.root is not None and self.hub.root.is_extensions
        self.is_extensions = bool(arguments.get(EXTENSION_MARK)) or is_of_root
        if self.is_extensions:
            self.channel.error_link = SHOW_LOG

    def _of_session(self, arguments: dict[str, Any]) -> str:
        self.session = str((arguments.get("session") or {}).get("ranks") or "")
        if self.session:
            try:
                self._ranks = RankSet.parse(self.session, self.hub.wanted.settings.rank_sets)
            except RankSetError:
                if self.hub.root is None or self.hub.root.sessions is None:
                    raise
                self._ranks = None  # a group with an odd name: known by the session's own name
        return self.session

    def _become_root(self, settings: LaunchSettings) -> None:
        self.hub.become_root(self)
        self.hub.wanted.apply(settings)
        by_event = self.is_extensions or bool(self.client.get("supportsRankscopeChildren"))
        by_request = bool(self.client.get("supportsStartDebuggingRequest"))
        self.sessions = Sessions(self.channel, settings, by_event=by_event, by_request=by_request)
        is_supported = bool(self.client.get("supportsProgressReporting"))
        self._progress = JoinProgress(self.channel, is_supported=is_supported)

    async def _attach_child(self) -> dict[str, Any]:
        await self._take_configuration()
        self.present_all()
        if self.hub.root is not None:
            self.hub.root.present_all()
            self.hub.root.ranks_changed()
        return {}

    async def _take_configuration(self) -> None:
        """Let the client send its breakpoints; returns when it says that these were all."""
        self.channel.send_event("initialized")
        try:
            await asyncio.wait_for(self._configured.wait(), _CONFIGURE_SECONDS)
        except (TimeoutError, asyncio.TimeoutError) as e:
            raise DapError(f"The editor sent no configurationDone within {_CONFIGURE_SECONDS:g} s.") from e
        self.is_configured = True
        self.status_changed()

    async def do_configuration_done(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Every breakpoint is known."""
        del arguments
        self._configured.set()
        return {}

    async def do_restart(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """End the job and launch it anew, in the same sessions."""
        del arguments
        await self.hub.restart()
        return {}

    async def do_terminate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """End the job: politely once, what is left by force, within 5 s."""
        del arguments
        await self.hub.end_job()
        return {}

    async def do_disconnect(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Leave. The root ends a job it launched unless told otherwise; a child lets its ranks run on."""
        ends = arguments.get("terminateDebuggee")
        if ends or (ends is None and self._has_launched and self.hub.job.exit_code is None):
            await self.hub.end_job()
        else:
            if self.is_root:
                if self._has_launched:
                    self.hub.job.leave_running()
                members = self.hub.fleet.select(None)
            else:
                members = [member for member in self.shown.values() if member.is_live]
            await self.hub.fleet.control.act(members, "continue")
        asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(self.channel.close()))
        return {}

    async def do_cancel(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """``progressId``: the person does not want to wait for the ranks any more. Requests are the channel's."""
        if self.is_root and arguments.get("progressId") == self._progress.id:
            await self.hub.end_job("cancelled while ranks were joining")
        return {}

    def job_ended(self, code: int | None) -> None:
        """The job has ended, or never began: tell the client, which then leaves. Idempotent."""
        if self.is_ended:
            return
        self.is_ended = True
        self._progress.end()
        if self.is_root and code is not None:
            self.channel.send_event("exited", {"exitCode": code})
        self.channel.send_event("terminated")
        asyncio.get_running_loop().call_later(_LEAVE_SECONDS, lambda: asyncio.ensure_future(self.channel.close()))

    # --- who is presented here --------------------------------------------------------------------

    def presents(self, member: Member) -> bool:
        """Whether a member's threads belong into this session now."""
        facts = member.facts
        if not self.is_configured or not member.is_live or member.is_greyed or facts.role == "idle":
            return False
        if facts.role == "child" and not member.is_armed:
            return False
        sessions = None if self.hub.root is None else self.hub.root.sessions
        name = "" if sessions is None else sessions.name_for(member)
        if not self.is_root:
            if sessions is not None and sessions.knows(self.session):
                return name == self.session
            return self._ranks is not None and self._ranks.contains(facts) is True
        if sessions is None or not name:
            return True
        if self.has_session(name) or sessions.is_awaited(name):
            return False
        if sessions.is_beyond_cap(name):
            return bool(member.stopped) or member.id in self.asked or self.hub.wanted.holds.of(member) is not None
        return True

    def present_all(self) -> None:
        """Look at every member anew."""
        for member in list(self.hub.fleet.members.values()):
            self._present(member)

    def _present(self, member: Member) -> None:
        """Show or hide a member, as it should be; and ask for its own session."""
        if self.is_root and self.is_configured and self.sessions is not None:
            self._open_session(member)
        is_shown, should = member.id in self.shown, self.presents(member)
        if should and not is_shown:
            self.shown[member.id] = member
            number = self.ids.threads.give(member.id, 0)
            self.channel.send_event("thread", {"reason": "started", "threadId": number})
            for body in list(member.stopped.values()):
                self._stopped(member, body)
        elif is_shown and not should:
            self._hide(member)

    def _open_session(self, member: Member) -> None:
        if self.sessions is None or member.facts.role != "rank" or member.is_greyed or not member.is_live:
            return
        name = self.sessions.name_for(member)
        if self.sessions.open(name, session_label(name, member)):
            self.held_back()

    def held_back(self) -> None:
        """A session was asked for: look again when it has not come."""
        asyncio.get_running_loop().call_later(_HELD_BACK_SECONDS, self.present_all)

    def _hide(self, member: Member) -> None:
        del self.shown[member.id]
        self.stops.pop(member.id, None)
        self.asked.discard(member.id)
        self.ids.resumed(member.id)
        for number in self.ids.threads.of(member.id):
            self.channel.send_event("thread", {"reason": "exited", "threadId": number})
        self.ids.threads.drop(member.id)

    # --- what the fleet tells ---------------------------------------------------------------------

    def member_joined(self, member: Member) -> None:
        """A process has joined the job."""
        self.member_changed(member)

    def member_changed(self, member: Member) -> None:
        """A member's state, rank or debugger is another."""
        self._present(member)
        if self.is_root:
            self._progress.update(self.hub.fleet)
        self.ranks_changed()

    def member_left(self, member: Member) -> None:
        """A process of the job has ended."""
        if member.id in self.shown:
            self._hide(member)
        self.ranks_changed()

    def member_event(self, member: Member, event: str, body: dict[str, Any]) -> None:
        """Pass on what a member's debugpy says, in this client's words."""
        if event == "output":
            if self._hears(member) and body.get("category") != "telemetry":
                self._output(f"[{member.label}] ", str(body.get("output", "")), str(body.get("category") or "console"))
            return
        if event == BARRIER_EVENT:
            self.barrier_complete(body["members"])
            self.ranks_changed()
            return
        if member.id not in self.shown:
            self._present(member)
            if event == "stopped":
                self.ranks_changed()
            return
        if event == "stopped":
            self._stopped(member, body)
            self.ranks_changed()
        elif event == "continued":
            self._continued(member)
            self._present(member)
            self.ranks_changed()
        elif event == "thread":
            number = self._thread_number(member, int(body["threadId"]))
            self.channel.send_event("thread", {"reason": body.get("reason", "started"), "threadId": number})

    def notice(self, level: str, text: str, member: Member | None) -> None:
        """Something a person should read: the root's console has it."""
        if self.is_root:
            head = f"[{member.label}] " if member is not None else "[rankscope] "
            is_told = level == "failure" and self.is_extensions  # with buttons, by its finding
            self._output(head, text, "console" if level == "info" or is_told else "important")

    def _hears(self, member: Member) -> bool:
        """One session has a member's output: its own, or the root when none does."""
        if member.id in self.shown:
            return True
        return self.is_root and not any(member.id in front.shown for front in self.hub.fronts)

    def _output(self, head: str, text: str, category: str) -> None:
        lines = text.splitlines() or [""]
        self.channel.send_event(
            "output", {"category": category, "output": "".join(f"{head}{line}\n" for line in lines)}
        )

    def _stopped(self, member: Member, body: dict[str, Any]) -> None:
        local = int(body.get("threadId", 0))
        holds = self.hub.fleet.control.barriers.holds
        others = any(
            other.stopped and other is not member and not holds(other) for other in self.hub.fleet.members.values()
        )
        elsewhere = any(front.asked - {member.id} for front in self.hub.fronts)
        is_asked = member.id in self.asked
        self.asked.discard(member.id)
        number = self._thread_number(member, local)
        self.stops.setdefault(member.id, {})[local] = number
        takes_focus = not body.get("preserveFocusHint", (others or elsewhere) and not is_asked) and not holds(member)
        self.tell_stop(member, body, number, takes_focus=takes_focus)
        self._progress.end()

    def _thread_number(self, member: Member, local: int) -> int:
        """This client's id of a thread; the first one debugpy tells of (the main one) keeps the dormant member's."""
        self.ids.threads.rename(member.id, 0, local)
        return self.ids.threads.give(member.id, local)

    def _continued(self, member: Member) -> None:
        """debugpy lets all threads of its process go at once."""
        self.ids.resumed(member.id)
        for number in self.stops.pop(member.id, {}).values():
            body = {"threadId": number, "allThreadsContinued": not self.presents_several}
            self.channel.send_event("continued", body)

    def _table_changed(self) -> None:
        self.breakpoints_changed()
        self.status_changed()
