"""debugpy in this process: arm, relay, disarm.

To arm, a one-shot listener is opened on 127.0.0.1 and ``debugpy.connect`` runs
against it, on the thread that must not go on yet or on a helper thread. The one
connection is accepted, the listener closed, and its bytes are relayed. When the
relay is closed, by whoever, debugpy lets every paused thread run on.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

# Python's own, before debugpy puts one in its place that warns on the job's stderr.
set_trace = sys.settrace

_CHUNK = 1 << 16
_DISPOSE_SECONDS = 2.0
_FAREWELL_SECONDS = 0.5
_FAREWELL_SEQ = 2_000_000_000
_FAREWELL = b'"request_seq": %d' % _FAREWELL_SEQ
_PLUGINS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plugins")


def _disconnect() -> bytes:
    arguments = {"restart": False, "terminateDebuggee": False}
    request = {"seq": _FAREWELL_SEQ, "type": "request", "command": "disconnect", "arguments": arguments}
    body = json.dumps(request).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


_DISCONNECT = _disconnect()


class Debugger:
    """The debugger connection of this process. Its sockets belong to the agent's thread.

    ``connect`` may run on another thread; everything else on the agent's.
    """

    def __init__(self) -> None:
        self.listener: socket.socket | None = None
        self.relay: socket.socket | None = None
        self.token = ""
        self._out = bytearray()
        self._has_traced = False

    @property
    def is_open(self) -> bool:
        """Whether a listener waits or a relay runs."""
        return self.listener is not None or self.relay is not None

    @property
    def wants_to_write(self) -> bool:
        """Whether bytes wait for debugpy to take them."""
        return bool(self._out)

    def open(self) -> tuple[int, str]:
        """Open the one-shot listener; returns its port and the token that debugpy must show."""
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1)
        self.token = secrets.token_hex(16)
        port: int = self.listener.getsockname()[1]
        return port, self.token

    def prepare(self) -> None:
        """Load debugpy, on a helper thread, while this process waits for work; :meth:`connect` tells what fails."""
        with contextlib.suppress(Exception):
            self._load()

    def connect(self, port: int, token: str) -> None:
        """Import debugpy and connect it. Blocks until it is configured or the relay is closed.

        Raises what debugpy raises; ``ImportError`` where it is not installed.
        """
        self._has_traced = True
        self._load()("connect")(("127.0.0.1", port), access_token=token)

    def _load(self) -> Callable[[str], Callable[..., Any]]:
        """Import debugpy, whose parts come with its first call; returns where its own functions are."""
        os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
        from rankscope.agent import guards

        # pydevd's plugin folder is a namespace package, which is put together when pydevd is first loaded.
        sys.path.append(_PLUGINS)
        try:
            guards.original("configure")(subProcess=False)
        finally:
            with contextlib.suppress(ValueError):  # the program has put another path in place
                sys.path.remove(_PLUGINS)
        return guards.original

    def accept(self) -> None:
        """Take the one connection and close the listener."""
        if self.listener is None:
            return
        relay, _ = self.listener.accept()
        self.listener.close()
        self.listener = None
        relay.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        relay.setblocking(False)
        self.relay = relay
        self._acknowledge()

    def read(self) -> bytes:
        """Bytes from debugpy; empty when it has closed."""
        if self.relay is None:
            return b""
        try:
            data = self.relay.recv(_CHUNK)
            self._acknowledge()
            return data
        except BlockingIOError:
            raise
        except OSError:
            return b""

    def _acknowledge(self) -> None:
        """Acknowledge at once: pydevd writes header and body apart, and waits 40 ms in between for a late one."""
        if self.relay is not None and hasattr(socket, "TCP_QUICKACK"):
            self.relay.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def write(self, data: bytes) -> None:
        """Bytes for debugpy; sent as it takes them."""
        self._out += data
        self.on_writable()

    def on_writable(self) -> None:
        """Send what waits."""
        while self._out and self.relay is not None:
            try:
                sent = self.relay.send(self._out)
            except BlockingIOError:
                return
            except OSError:
                self._out.clear()
                return
            del self._out[:sent]

    def close(self) -> None:
        """Take leave of debugpy and close the sockets: every paused thread runs on.

        A bare close would do that too, but leaves threads marked as suspended, and a later
        arming would find them stopped.
        """
        if self.relay is not None:
            self.write(_DISCONNECT)
            self._drain(self.relay)
        for sock in (self.listener, self.relay):
            if sock is not None:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
                sock.close()
        self.listener = self.relay = None
        self._out.clear()

    def _drain(self, relay: socket.socket) -> None:
        """Read until debugpy has answered the farewell, for ``_FAREWELL_SECONDS`` at most."""
        tail, deadline = b"", time.monotonic() + _FAREWELL_SECONDS
        relay.settimeout(_FAREWELL_SECONDS)
        with contextlib.suppress(OSError):
            while _FAREWELL not in tail and time.monotonic() < deadline and (data := relay.recv(_CHUNK)):
                tail = (tail + data)[-4096:]

    def stop_tracing(self) -> None:
        """Give back full speed after :meth:`close`: no trace function, no monitoring events."""
        if self._has_traced:
            self._has_traced = False
            _stop_tracing()


def hide_from_debugger(thread: threading.Thread) -> None:
    """debugpy neither traces nor stops a thread with these marks."""
    thread.pydev_do_not_trace = True  # type: ignore[attr-defined]
    thread.is_pydev_daemon_thread = True  # type: ignore[attr-defined]


def wake(_arguments: dict[str, Any]) -> dict[str, Any]:
    """Serves the question ``wake``: threads that the debugger has stopped look now whether they may run.

    That part of pydevd is private; were it absent, a step would take 0.2 s longer now and then.
    """
    with contextlib.suppress(Exception):  # another pydevd
        for event in list(sys.modules["pydevd"].get_global_debugger()._thread_events.values()):
            event.set()
    return {}


def clear_after_fork() -> None:
    """In the forked child of an armed process: drop what it inherited of the debugger."""
    if "pydevd" in sys.modules:
        _clear_monitoring()
        _clear_trace_functions()


def _stop_tracing() -> None:
    pydevd: Any = sys.modules.get("pydevd")
    if pydevd is not None:
        with contextlib.suppress(Exception):
            pydevd.stoptrace()
        deadline = time.monotonic() + _DISPOSE_SECONDS
        while pydevd.get_global_debugger() is not None and time.monotonic() < deadline:
            time.sleep(0.01)
    _clear_monitoring()
    _clear_trace_functions()


def _clear_monitoring() -> None:
    """Switch off every event of the debugger's monitoring tool (3.12+) and give its id back."""
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is None or monitoring.get_tool(monitoring.DEBUGGER_ID) is None:
        return
    tool = monitoring.DEBUGGER_ID
    monitoring.set_events(tool, 0)
    for name in dir(monitoring.events):
        event = getattr(monitoring.events, name)
        if isinstance(event, int) and event and event & (event - 1) == 0:
            with contextlib.suppress(ValueError):
                monitoring.register_callback(tool, event, None)
    if hasattr(monitoring, "clear_tool_id"):
        monitoring.clear_tool_id(tool)
    monitoring.free_tool_id(tool)


def _clear_trace_functions() -> None:
    """Remove the trace function of every thread (3.10, 3.11).

    ``sys.settrace`` reaches only the calling thread. pydevd can set a trace function in
    the others: it is given one that takes itself away when it is first called. That part
    of pydevd is private; were it absent, only speed would be lost.
    """
    if sys.version_info >= (3, 12):
        return
    tracing: Any = sys.modules.get("pydevd_tracing")
    if tracing is None:
        return
    with contextlib.suppress(Exception):
        threading.settrace(None)
        tracing.SetTrace(None)

        def take_away(frame: Any, event: str, arg: Any) -> None:
            del frame, event, arg
            tracing.SetTrace(None)

        own = threading.get_ident()
        others = {ident for ident in sys._current_frames() if ident != own}
        tracing.set_trace_to_threads(take_away, thread_idents=others, create_dummy_thread=False)
