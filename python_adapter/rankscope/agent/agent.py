"""The agent: one idle thread and one socket per member, until the debugger is needed.

The thread serves the link to the hub and, while the member is armed, the relay to
debugpy. Whatever happens to the hub, within ``release_after`` seconds every thread of
this process runs on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from queue import SimpleQueue
from typing import Any

from rankscope.agent import ending
from rankscope.agent.debugger import Debugger, hide_from_debugger
from rankscope.agent.gate import Gate
from rankscope.agent.hub_link import HubLink, LinkBroken, Refused
from rankscope.agent.inbox import READ, WRITE, Inbox
from rankscope.ranks import RankFacts
from rankscope.wire import messages as m
from rankscope.wire.frames import FrameError
from rankscope.wire.link import HEARTBEAT_SECONDS, Endpoint

current: Agent | None = None

_BOTH = READ | WRITE
_RETRY_SECONDS = 0.25
_RETRY_LATER_SECONDS = 5.0
_GIVE_UP_SECONDS = 600.0


class Agent:
    """This process's agent. Owns its thread, the link and the debugger; :meth:`stop` ends all three.

    ``armed_hooks`` and ``released_hooks`` run on the agent's thread once the member is
    armed, and when it is let go (disarmed, or the hub is gone). ``answers`` serve
    questions on that thread, so each must be quick, and so must ``timers``, which run whenever it wakes: once a second
    or more often. In ``verdicts`` the hub's answers to failures arrive, by number.
    """

    def __init__(self, endpoint: Endpoint, hello: m.Hello) -> None:
        self.facts = RankFacts(**hello.facts)
        self.settings: m.Welcome | None = None
        self.is_armed = False
        self.armed_hooks: list[Callable[[], None]] = []
        self.released_hooks: list[Callable[[], None]] = []
        self.timers: list[Callable[[], None]] = []
        self.answers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
        self.verdicts: dict[int, SimpleQueue[bool]] = {}
        self.file_watchers: list[Callable[[list[str]], None]] = []
        self._endpoint = endpoint
        self._link = HubLink(endpoint, hello)
        self._debugger = Debugger()
        self._inbox = Inbox()
        self._gate = Gate(is_closed=hello.waits)
        self._arm_deadline: float | None = None
        self._lost_at: float | None = time.monotonic()
        self._next_try = 0.0
        self._kill_at: float | None = None
        self._has_linked = threading.Event()
        self._is_free = False
        self._is_gone = False
        self._is_stopping = False
        self._pid = os.getpid()
        self.thread = threading.Thread(target=self._run, name="rankscope", daemon=True)
        hide_from_debugger(self.thread)

    @property
    def is_linked(self) -> bool:
        """Whether the hub is there at the moment."""
        return self._link.socket is not None

    def await_link(self, seconds: float) -> bool:
        """Whether the hub is there, waiting so long for it in a process that has only begun."""
        if self._lost_at is not None and not self._has_linked.is_set():
            self._has_linked.wait(seconds)
        return self.is_linked

    @property
    def _has_hub(self) -> bool:
        """Whether it is worth waiting for the hub's word."""
        return not self._is_gone and not self._is_free

    # --- called from other threads ----------------------------------------------------------------

    def start(self) -> None:
        """Start the thread; it connects by itself."""
        self.thread.start()

    def serve_start(self, timeout: float) -> None:
        """Keep the calling thread until the hub has said that it may go on, arming on it when asked.

        Returns after ``timeout`` seconds at the latest, with a warning. Never raises.
        """
        if not self._gate.wait(timeout, self._connect) and not self._is_gone:
            text = f"went on after {timeout:g} s without its breakpoints: the hub did not answer in time"
            self.notice("warning", text)

    def identify(
        self,
        facts: RankFacts,
        *,
        name: str = "",
        roots: Sequence[str] = (),
        ray: dict[str, Any] | None = None,
        waits: bool = False,
    ) -> None:
        """Tell the hub better facts; with ``waits`` the calling thread then waits as at the start."""
        self.facts = facts
        waits = waits and self._has_hub
        ask = self._gate.close() if waits else 0
        message = m.Identity(facts=asdict(facts), name=name, roots=list(roots), ray=ray or {}, ask=ask)
        self._inbox.call(lambda: self._identify(message))
        if waits:
            self.serve_start(self._endpoint.start_wait)

    def arm_here(self, why: str, timeout: float) -> bool:
        """Arm now, on the calling thread. False when there is no hub or it took longer than ``timeout`` s."""
        if not self.is_armed and self._has_hub:
            ask = self._gate.close()
            self.send(m.ArmMe(why=why, ask=ask))
            self.serve_start(timeout)
        return self.is_armed

    def send(self, message: m.Message) -> None:
        """Tell the hub something, now or after a reconnect."""
        self._inbox.call(lambda: self._link.send(message))

    def notice(self, level: str, text: str) -> None:
        """Say something to the person at the hub."""
        self.send(m.Notice(level=level, text=text))

    def stop(self) -> None:
        """Take leave of the hub and end the thread, within half a second."""
        if self._pid != os.getpid() or not self.thread.is_alive():
            return

        def leave() -> None:
            self._link.send(m.Leaving(why=ending.why()))
            self._is_stopping = True

        self._inbox.call(lambda: self._run_hooks(self.timers))
        self._inbox.call(lambda: self._inbox.call(leave))  # after what they send
        self.thread.join(0.5)

    def forget(self) -> None:
        """In a forked child: close what was inherited without a word to anyone."""
        for sock in (self._link.socket, self._debugger.listener, self._debugger.relay):
            if sock is not None:
                with contextlib.suppress(OSError):
                    sock.close()
        self._inbox.close()
        self._is_gone = True
        self.is_armed = False

    # --- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._is_gone and (not self._is_stopping or self._link.wants_to_write):
                try:
                    self._turn()
                except (OSError, FrameError):
                    self._link_lost()
                except (Refused, LinkBroken, TypeError) as e:
                    self._give_up(str(e))
        finally:
            self._release("" if self._is_stopping else "the agent ended")
            self._is_gone = True
            self._gate.open()
            self._link.close()

    def _turn(self) -> None:
        now = time.monotonic()
        if self._link.socket is None and now >= self._next_try:
            self._connect_link()
        for sock in self._select():
            if sock is self._link.socket:
                self._link.on_writable()
            elif sock is self._debugger.relay:
                self._debugger.on_writable()
        self._inbox.run_calls()
        self._timers()

    def _select(self) -> list[socket.socket]:
        """Serve what is readable; returns what is writable."""
        writable: list[socket.socket] = []
        watched: dict[socket.socket, int] = {}
        if self._link.socket is not None:
            watched[self._link.socket] = _BOTH if self._link.wants_to_write else READ
        if self._debugger.listener is not None:
            watched[self._debugger.listener] = READ
        if self._debugger.relay is not None:
            watched[self._debugger.relay] = _BOTH if self._debugger.wants_to_write else READ
        for sock, mask in self._inbox.wait(watched, self._patience()):
            if mask & WRITE:
                writable.append(sock)
            if not mask & READ:
                continue
            if sock is self._link.socket:
                for message in self._link.on_readable():
                    self._handle(message)
            elif sock is self._debugger.listener:
                self._accept()
            elif sock is self._debugger.relay:
                self._from_debugpy()
        return writable

    def _patience(self) -> float:
        if self._inbox.has_calls:
            return 0.0
        if self._link.socket is None:
            return max(0.0, min(HEARTBEAT_SECONDS, self._next_try - time.monotonic()))
        return 0.2 if self._arm_deadline or self._kill_at else HEARTBEAT_SECONDS / 2

    def _timers(self) -> None:
        now = time.monotonic()
        if self._link.socket is not None:
            if now - self._link.spoke_at >= HEARTBEAT_SECONDS:
                self._link.heartbeat()
            if now - self._link.heard_at > self._endpoint.release_after:
                self._link_lost(since=self._link.heard_at)
        if self._lost_at is not None and now - self._lost_at > self._endpoint.release_after:
            self._hub_gone()
            if now - self._lost_at > _GIVE_UP_SECONDS:
                self._give_up("the hub is gone for good")
        if self._arm_deadline is not None and now > self._arm_deadline:
            self._release("arming took too long")
        self._run_hooks(self.timers)
        if self._kill_at is not None and now > self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    # --- the link ---------------------------------------------------------------------------------

    def _connect_link(self) -> None:
        try:
            self._link.connect()
        except OSError:
            lost_for = time.monotonic() - (self._lost_at or time.monotonic())
            is_late = lost_for > self._endpoint.release_after
            self._next_try = time.monotonic() + (_RETRY_LATER_SECONDS if is_late else _RETRY_SECONDS)
            return
        self._lost_at = None
        self._is_free = False
        self._has_linked.set()
        for message in self._link.arrived():
            self._handle(message)

    def _link_lost(self, since: float | None = None) -> None:
        self._link.close()
        if self._lost_at is None:
            self._lost_at = since or time.monotonic()
        self._next_try = time.monotonic() + _RETRY_SECONDS / 5

    def _give_up(self, why: str) -> None:
        if os.environ.get("RANKSCOPE_DEBUG"):
            os.write(2, f"rankscope: the agent of process {os.getpid()} gave up: {why}\n".encode())
        self._is_gone = True

    def _identify(self, message: m.Identity) -> None:
        hello = self._link.hello
        hello.facts = message.facts
        hello.name = message.name or hello.name
        self._link.send(message)

    def _handle(self, message: m.Message) -> None:
        if isinstance(message, m.Dap):
            self._debugger.write(message.data)
        elif isinstance(message, m.Ask):
            self._link.send(self._answer(message))
        elif isinstance(message, (m.Welcome, m.Settled)):
            self._settled(message)
        elif isinstance(message, m.Arm):
            self._arm()
        elif isinstance(message, m.Ready):
            self._arm_deadline = None
            self.is_armed = True
            self._run_hooks(self.armed_hooks)
            self._gate.open()
        elif isinstance(message, m.Disarm):
            self._release("")
            self._gate.open()
        elif isinstance(message, m.Verdict):
            if message.ask in self.verdicts:
                self.verdicts[message.ask].put(message.will_hold)
        elif isinstance(message, m.End):
            self._kill_at = time.monotonic() + message.grace
            os.kill(os.getpid(), signal.SIGTERM)

    def _settled(self, message: m.Welcome | m.Settled) -> None:
        if message.rank is not None and self.facts.rank is None:
            self.facts = self.facts.with_changes(rank=message.rank)
        if isinstance(message, m.Welcome):
            self.settings = message
            if message.prepares:
                self._start_helper("rankscope-prepare", self._debugger.prepare)
            if message.node is not None:
                self.facts = self.facts.with_changes(node=message.node)
        self._run_hooks([partial(watcher, message.files) for watcher in self.file_watchers])
        answers = self._link.hello.waits if isinstance(message, m.Welcome) else message.answers == self._gate.question
        if answers and not message.will_arm:
            self._gate.open()

    def _answer(self, ask: m.Ask) -> m.Reply:
        answer = self.answers.get(ask.what)
        if answer is None:
            return m.Reply(ask=ask.ask, error=f"this agent cannot answer '{ask.what}'")
        try:
            return m.Reply(ask=ask.ask, body=answer(ask.arguments))
        except Exception as e:
            return m.Reply(ask=ask.ask, error=f"{type(e).__name__}: {e}")

    # --- the debugger -----------------------------------------------------------------------------

    def _arm(self) -> None:
        if self._debugger.is_open:
            return
        task = self._debugger.open()
        self._arm_deadline = time.monotonic() + self._endpoint.start_wait
        if self._gate.offer(task):
            return
        self._start_helper("rankscope-arm", partial(self._connect, *task))

    def _start_helper(self, name: str, work: Callable[[], None]) -> None:
        helper = threading.Thread(target=work, name=name, daemon=True)
        hide_from_debugger(helper)
        helper.start()

    def _connect(self, port: int, token: str) -> None:
        """On the waiting thread or a helper: connect debugpy, reporting a failure to the hub."""
        try:
            self._debugger.connect(port, token)
        except BaseException as e:
            error = f"{type(e).__name__}: {e}"
            if isinstance(e, ModuleNotFoundError) and e.name == "debugpy":
                error = f"debugpy is not installed for {sys.executable}: pip install debugpy"
            self._inbox.call(lambda: self._arm_failed(error))

    def _arm_failed(self, error: str) -> None:
        if self._debugger.is_open:
            self._link.send(m.Armed(error=error))
            self._release(error)
        self._gate.open()

    def _accept(self) -> None:
        self._debugger.accept()
        self._link.send(m.Armed(token=self._debugger.token))

    def _from_debugpy(self) -> None:
        try:
            data = self._debugger.read()
        except BlockingIOError:
            return
        if data:
            self._link.send(m.Dap(data=data))
        else:
            self._release("debugpy closed its connection")

    def _release(self, reason: str) -> None:
        """Close the debugger and let the process run at full speed; nothing when it is closed already."""
        self._arm_deadline = None
        if self._debugger.is_open:
            self._debugger.close()
            if not self._is_stopping:
                self._debugger.stop_tracing()
            self.is_armed = False
            with contextlib.suppress(LinkBroken, OSError):
                self._link.send(m.Disarmed(reason=reason))
            self._run_hooks(self.released_hooks)
        if reason:
            self._gate.open()

    def _hub_gone(self) -> None:
        """Nobody is there to let this process go on: let it, once per loss."""
        if not self._is_free:
            self._is_free = True
            self._release("the hub is gone")
            self._gate.open()
            self._run_hooks(self.released_hooks)

    def _run_hooks(self, hooks: Sequence[Callable[[], None]]) -> None:
        """One that fails is told and keeps no other from running."""
        for hook in hooks:
            try:
                hook()
            except Exception as e:
                self.notice("error", f"RankScope failed in {getattr(hook, '__name__', hook)}: {e!r}")
