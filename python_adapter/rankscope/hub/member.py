"""One member of the job as the hub knows it: its link, its state, its debugger."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from rankscope.dap.messages import DapError
from rankscope.hub import pausing, processes
from rankscope.hub.debug_client import DebugClient
from rankscope.ranks import DRIVER, RankFacts
from rankscope.wire import frames
from rankscope.wire import messages as m
from rankscope.wire.link import Sequencer

if TYPE_CHECKING:
    from rankscope.hub.fleet import Fleet

_DISCONNECT_SECONDS = 2.0
_MAX_UNSENT = 64 << 20
LOOK_SECONDS = 5.0
_LOOK_ANSWER_SECONDS = 0.5
FIRST_LOOK_SECONDS = LOOK_SECONDS - 1.0
_WAKE_SECONDS = 0.01
STEPS = ("next", "stepIn", "stepOut")


class Member:
    """A process with an agent. Its link may come and go; :meth:`close` is final.

    ``stopped`` maps debugpy's thread ids to the body of their ``stopped`` event, ``ending``
    says why it ended, where that is known. ``is_dismissed``: its end is to be expected. ``last_seen`` is its last
    answer to ``top`` and when that came (``at``, monotonic).
    """

    def __init__(self, fleet: Fleet, hello: m.Hello, number: int) -> None:
        self.id = hello.member
        self.hello = hello
        self.number = number
        self.facts = RankFacts(**hello.facts)
        self.incarnation = 0
        self.is_armed = False
        self.is_greyed = False
        self.is_ray_worker = self.facts.role == "idle"  # as each of them begins
        self.is_dismissed = False
        self.stopped: dict[int, dict[str, Any]] = {}
        self.ending = ""
        self.last_seen: dict[str, Any] = {}
        self.looked_at = time.monotonic() - FIRST_LOOK_SECONDS
        self.lost_at: float | None = None
        self.spoke_at = time.monotonic()
        self.order = Sequencer()
        self._fleet = fleet
        self._state = "starting" if hello.waits else "running"
        self._writer: asyncio.StreamWriter | None = None
        self._client: DebugClient | None = None
        self._paused: dict[str, Any] | None = None
        self._armed: asyncio.Future[m.Armed] | None = None
        self._disarmed: asyncio.Future[None] | None = None
        self._arming = asyncio.Lock()
        self._asks: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._ask_number = self._glance = 0

    # --- what it is -------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """One of ``starting``, ``running``, ``paused``, ``exited``, ``crashed``, ``lost``."""
        return "paused" if self.stopped and self.is_live else self._state

    @property
    def is_live(self) -> bool:
        """Whether the process is thought to run (its link may be broken for the moment)."""
        return self._state in ("starting", "running")

    @property
    def is_local(self) -> bool:
        """Whether its pid is one of this host."""
        return self.hello.host == socket.gethostname()

    @property
    def label(self) -> str:
        """How people read it: ``actor 2 · node-1``."""
        facts = self.facts
        if facts.role == DRIVER:
            return f"driver {self.hello.name}".rstrip()
        group = facts.group or self.hello.name or "python"
        label = group if facts.rank is None else f"{group} {facts.rank}"
        if facts.role == "child":
            parent = self._fleet.members.get(self.hello.parent)
            label = f"{parent.label if parent else label} child {self.hello.pid}"
        elif self._fleet.node_count > 1 and facts.node is not None:
            label += f" · node-{facts.node}"
        return label

    def has_ended(self) -> bool:
        """Whether the process is surely gone: it is local and its pid is not there."""
        return self.is_local and processes.has_ended(self.hello.pid)

    # --- the link ---------------------------------------------------------------------------------

    def linked(self, writer: asyncio.StreamWriter, seen: int) -> None:
        """Take over a proved connection and send what the agent, which has ``seen`` so many, lacks."""
        if self._writer is not None:
            self._writer.close()
        self._writer = writer
        self.lost_at = None
        for frame in self.order.resume(seen):
            writer.write(frames.pack(frame))

    def unlinked(self, writer: asyncio.StreamWriter) -> bool:
        """The connection broke; whether it was the one in use."""
        if self._writer is not writer:
            return False
        self._writer = None
        self.lost_at = time.monotonic()
        return True

    def send(self, message: m.Message) -> None:
        """Send now, or after the agent has reconnected."""
        self._write(self.order.wrap(m.encode(message)))

    def heartbeat(self) -> None:
        """Tell the agent that the hub lives."""
        self._write(self.order.heartbeat())

    def _write(self, frame: dict[str, Any]) -> None:
        if self._writer is None or self._writer.is_closing():
            return
        self.spoke_at = time.monotonic()
        self._writer.write(frames.pack(frame))
        if self._writer.transport.get_write_buffer_size() > _MAX_UNSENT:
            self._writer.transport.abort()  # it takes nothing in; what it lacks is kept for its reconnect

    def handle(self, message: m.Message) -> None:
        """One message of the agent that concerns this member alone."""
        if isinstance(message, m.Dap):
            if self._client is not None:
                self._client.feed(message.data)
        elif isinstance(message, m.Armed):
            if self._armed is not None and not self._armed.done():
                self._armed.set_result(message)
        elif isinstance(message, m.Disarmed):
            self._dropped(message.reason)
        elif isinstance(message, m.Reply):
            future = self._asks.get(message.ask)
            if future is not None and not future.done():
                if message.error:
                    future.set_exception(DapError(message.error))
                else:
                    future.set_result(message.body)

    def close(self, state: str, ending: str = "") -> None:
        """The process is ``exited``, ``crashed`` or ``lost``: nothing pends on it any more."""
        self._state = state
        self.ending = ending
        self._dropped("the process has ended")
        for future in self._asks.values():
            if not future.done():
                future.set_exception(DapError(f"{self.label} has {state}"))
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def running(self) -> None:
        """The agent has been told to go on."""
        if self._state == "starting":
            self._state = "running"

    # --- questions to the agent -------------------------------------------------------------------

    async def ask(self, what: str, arguments: dict[str, Any], *, timeout: float = 3.0) -> dict[str, Any]:
        """An answer of the agent's thread. Raises :class:`DapError` or ``TimeoutError``."""

        async def send(number: int) -> None:
            self.send(m.Ask(ask=number, what=what, arguments=arguments))

        return await self.replied(send, timeout=timeout)

    async def replied(self, begin: Callable[[int], Awaitable[object]], *, timeout: float) -> dict[str, Any]:
        """What the agent answers to the number that ``begin`` brings to it. Raises as :meth:`ask`, or as ``begin``."""
        if not self.is_live:
            raise DapError(f"{self.label} has {self._state}")
        self._ask_number += 1
        number = self._ask_number
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._asks[number] = future
        try:
            await begin(number)
            return await asyncio.wait_for(future, timeout)
        finally:
            del self._asks[number]

    async def look(self) -> dict[str, Any]:
        """Where it is and how much memory it holds: its answer to ``top``. Raises as :meth:`ask` does."""
        self.looked_at = time.monotonic()
        answer = await self.ask("top", {}, timeout=_LOOK_ANSWER_SECONDS)
        self._seen(answer)
        return answer

    def glance(self) -> None:
        """Look without waiting: ``last_seen`` will have the answer, if one comes. Cheap: it is done all the time."""
        self.looked_at = time.monotonic()
        self._asks.pop(self._glance, None)
        self._ask_number += 1
        self._glance = self._ask_number
        future = self._asks[self._glance] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda done: None if done.exception() else self._seen(done.result()))
        self.send(m.Ask(ask=self._glance, what="top"))

    def _seen(self, answer: dict[str, Any]) -> None:
        self.last_seen = {**answer, "at": time.monotonic()}

    # --- the debugger -----------------------------------------------------------------------------

    async def debug(
        self, command: str, arguments: dict[str, Any] | None = None, *, timeout: float = 10.0
    ) -> dict[str, Any]:
        """A DAP request to its debugpy. Raises :class:`DapError` or ``TimeoutError``."""
        if command == "continue":
            self._paused = None
        if self._client is None:
            raise DapError(f"{self.label} is not armed")
        answer = await self._client.request(command, arguments, timeout)
        if command in STEPS and arguments is not None:
            self._fleet.start(self._wake(int(arguments["threadId"])))
        return answer

    async def _wake(self, thread: int) -> None:
        """See that a thread told to step does so now: in a process with several, pydevd 1.8.22 may wake another one.

        It would wait on for 0.2 s.
        """
        before = self.stopped.get(thread)
        await asyncio.sleep(_WAKE_SECONDS)
        if before is not None and before is self.stopped.get(thread):
            with contextlib.suppress(DapError, TimeoutError, asyncio.TimeoutError):
                await self.ask("wake", {})

    async def arm(self, why: str) -> None:
        """Connect debugpy and configure it; nothing when that is done. Raises :class:`DapError`."""
        async with self._arming:
            if self.is_armed or not self.is_live:
                return
            try:
                await asyncio.wait_for(self._connect(), self._fleet.start_wait)
            except (DapError, TimeoutError, asyncio.TimeoutError) as e:
                self.send(m.Disarm())
                self._dropped(str(e))
                reason = str(e) or f"no answer within {self._fleet.start_wait:g} s"
                raise DapError(f"{self.label} could not be armed ({why}): {reason}") from e
            self.is_armed = True
            self.send(m.Ready())
            self.running()
            self._fleet.armed_changed()
            self._fleet.changed(self)

    async def _connect(self) -> None:
        self._armed = asyncio.get_running_loop().create_future()
        client = DebugClient(lambda data: self.send(m.Dap(data=data)), self._event)
        self._client = client
        self.send(m.Arm())
        armed = await self._armed
        if armed.error:
            raise DapError(armed.error)
        body = await client.request("pydevdAuthorize", {"debugServerAccessToken": None}, 10)
        if body.get("clientAccessToken") != armed.token:
            raise DapError("something other than this process's debugpy answered")
        wait = self._fleet.start_wait
        await asyncio.gather(  # debugpy serves them in this order
            client.request("initialize", INITIALIZE, wait),
            client.request("attach", self._fleet.wanted.attach_arguments(self), wait),
        )
        await self._fleet.wanted.configure(self)
        await client.request("configurationDone", None, wait)

    async def disarm(self) -> None:
        """Let it run at full speed, without debugger; nothing when it is dormant."""
        async with self._arming:
            if self._client is None:
                return
            with contextlib.suppress(DapError, TimeoutError, asyncio.TimeoutError):
                await self._client.request(
                    "disconnect", {"restart": False, "terminateDebuggee": False}, _DISCONNECT_SECONDS
                )
            self._disarmed = asyncio.get_running_loop().create_future()
            self.send(m.Disarm())
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(self._disarmed, _DISCONNECT_SECONDS)
            self._dropped("disarmed")

    def _dropped(self, why: str) -> None:
        """The debugger connection is gone, for whatever reason."""
        if self._armed is not None and not self._armed.done():
            self._armed.set_result(m.Armed(error=why or "the agent dropped the debugger"))
        if self._disarmed is not None and not self._disarmed.done():
            self._disarmed.set_result(None)
        if self._client is None:
            return
        self._client.close(why)
        self._client = None
        self._paused = None
        self.is_armed = False
        for thread in list(self.stopped):
            self._event("continued", {"threadId": thread, "allThreadsContinued": False})
        self._fleet.armed_changed()
        self._fleet.changed(self)

    async def _confirm_pause(self, body: dict[str, Any]) -> None:
        """Some thread has stopped for a pause, which nothing that has come since overrules."""
        self._paused = body
        found = await pausing.confirmed(self, body)
        if self._paused is not body:
            return
        if found is None:  # told anew when another thread has stopped
            await self.debug("pause", {"threadId": "*"})
        else:
            self._event("stopped", found, is_sure=True)

    def _event(self, event: str, body: dict[str, Any], *, is_sure: bool = False) -> None:
        if event == "stopped" and body.get("reason") == "pause" and not is_sure:
            self._fleet.start(self._confirm_pause(body))
            return
        if event in ("stopped", "continued"):
            self._paused = None
        if event == "stopped":
            if "text" in body:  # debugpy adds a note for its own client
                body["text"] = str(body["text"]).partition("(note:")[0].strip()
            body.pop("preserveFocusHint", None)  # whose stop takes the focus is the fronts' to say
            self.stopped[int(body.get("threadId", 0))] = body
        elif event == "continued":
            if body.get("allThreadsContinued", True):
                self.stopped.clear()
            else:
                self.stopped.pop(int(body.get("threadId", 0)), None)
        elif event == "thread" and body.get("reason") == "exited":
            self.stopped.pop(int(body.get("threadId", 0)), None)
        self._fleet.event(self, event, body)


def who(member: Member) -> dict[str, Any]:
    """Who a member is, as an editor and a record are told."""
    facts = member.facts
    return {
        "id": member.id,
        "number": member.number,
        "label": member.label,
        "role": facts.role,
        "group": facts.group,
        "rank": facts.rank,
        "localRank": facts.local_rank,
        "worldSize": facts.world_size,
        "node": facts.node,
        "incarnation": member.incarnation,
        "host": member.hello.host,
        "pid": member.hello.pid,
    }


INITIALIZE = {
    "clientID": "rankscope",
    "adapterID": "rankscope",
    "linesStartAt1": True,
    "columnsStartAt1": True,
    "pathFormat": "path",
    "supportsVariableType": True,
    "supportsVariablePaging": True,
    "supportsMemoryReferences": False,
}
