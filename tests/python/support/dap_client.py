"""A fake editor: starts the hub, speaks DAP to it, opens child sessions as VS Code would.

::

    async with FakeEditor() as editor:
        await editor.set_breakpoints(path, "loop @2")  # the line marked ``# @bp loop``, on rank 2
        await editor.launch(program=str(path))
        stop = await editor.wait_for_stop()
        assert (await stop.evaluate("x")) == "3"
        await stop.resume()
        assert await editor.exit_code() == 0
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankscope.dap.channel import Channel

WAIT_SECONDS = 30.0
_PACKAGE_FOLDER = Path(__file__).resolve().parents[3] / "python_adapter"


def line_of(path: str | Path, mark: str) -> int:
    """The number of the line that ends with ``# @bp mark``. Raises ``LookupError``."""
    pattern = re.compile(rf"#\s*@bp\s+{re.escape(mark)}\s*$")
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        if pattern.search(line):
            return number
    raise LookupError(f"{path} has no '# @bp {mark}'")


class Session:
    """One DAP connection. Keeps every event; :meth:`wait_for` looks at old ones as well as new ones."""

    def __init__(self, channel: Channel, name: str = "", answers: object | None = None) -> None:
        self.name = name
        self.channel = channel
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.listeners: list[Callable[[str, dict[str, Any]], None]] = []
        self.answers = answers
        self._news = asyncio.Condition()
        self._reading = asyncio.ensure_future(channel.serve(self))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_") and self.__dict__.get("answers") is not None:
            return getattr(self.answers, name)
        raise AttributeError(name)

    def on_event(self, event: str, body: dict[str, Any]) -> None:
        self.events.append((event, body))
        for listener in self.listeners:
            listener(event, body)
        self._telling = asyncio.ensure_future(self._tell())

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def request(
        self, command: str, arguments: dict[str, Any] | None = None, timeout: float = WAIT_SECONDS
    ) -> Any:
        return await self.channel.request(command, arguments, timeout)

    async def until(self, is_true: Callable[[], Any], what: str, timeout: float = WAIT_SECONDS) -> Any:
        """Wait for a predicate over what has been heard. Raises ``AssertionError`` that tells what was heard."""

        async def wait() -> Any:
            async with self._news:
                while not (found := is_true()):
                    await self._news.wait()
                return found

        try:
            return await asyncio.wait_for(wait(), timeout)
        except (asyncio.TimeoutError, TimeoutError):
            heard = "\n".join(f"  {event} {json.dumps(body)[:300]}" for event, body in self.events[-40:])
            raise AssertionError(f"session '{self.name}': no {what} within {timeout:g} s; heard\n{heard}") from None

    async def wait_for(
        self, event: str, accept: Callable[[dict[str, Any]], Any] = lambda _: True, timeout: float = WAIT_SECONDS
    ) -> dict[str, Any]:
        """The first event of that name that is accepted."""

        def find() -> Any:
            return [body for name, body in self.events if name == event and accept(body)]

        found: list[dict[str, Any]] = await self.until(find, f"event '{event}'", timeout)
        return found[0]

    async def close(self) -> None:
        await self.channel.close()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)


@dataclass
class Stop:
    """A thread that has stopped, in the session that says so."""

    session: Session
    body: dict[str, Any]

    @property
    def thread(self) -> int:
        return int(self.body["threadId"])

    @property
    def reason(self) -> str:
        return str(self.body["reason"])

    async def stack(self) -> list[dict[str, Any]]:
        body = await self.session.request("stackTrace", {"threadId": self.thread})
        return list(body["stackFrames"])

    async def line(self) -> int:
        return int((await self.stack())[0]["line"])

    async def evaluate(self, expression: str, context: str = "watch") -> str:
        frame = (await self.stack())[0]["id"]
        arguments = {"expression": expression, "frameId": frame, "context": context}
        return str((await self.session.request("evaluate", arguments))["result"])

    async def local_variables(self) -> dict[str, str]:
        frame = (await self.stack())[0]["id"]
        scopes = (await self.session.request("scopes", {"frameId": frame}))["scopes"]
        body = await self.session.request("variables", {"variablesReference": scopes[0]["variablesReference"]})
        return {variable["name"]: variable["value"] for variable in body["variables"]}

    async def resume(self, command: str = "continue") -> None:
        await self.session.request(command, {"threadId": self.thread})


@dataclass
class FakeEditor:
    """Owns a hub process and the connections to it; leaving the context ends all of them."""

    python: str = sys.executable
    opens_children: bool = True
    client: dict[str, Any] = field(default_factory=dict)
    answers: object | None = None
    environment: dict[str, str] = field(default_factory=dict)

    async def __aenter__(self) -> FakeEditor:  # noqa: PYI034 - Self came with 3.11
        self.folder = tempfile.TemporaryDirectory(prefix="rankscope-test-")
        self.socket = str(Path(self.folder.name) / "editor.sock")
        path = os.pathsep.join([str(_PACKAGE_FOLDER), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        self.hub = await asyncio.create_subprocess_exec(
            self.python,
            "-m",
            "rankscope.hub",
            "--editor",
            f"unix:{self.socket}",
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, **self.environment},
        )
        assert self.hub.stdout is not None
        line = await asyncio.wait_for(self.hub.stdout.readline(), WAIT_SECONDS)
        self.ready = json.loads(line)
        assert self.ready["ready"], self.ready
        self.children: dict[str, Session] = {}
        self.breakpoints: dict[str, list[dict[str, Any]]] = {}
        self.filters: dict[str, Any] = {"filters": []}
        self._taken: set[int] = set()
        self._stop_news = asyncio.Condition()
        self._tasks: set[asyncio.Task[Any]] = set()
        self.root = await self._connect("root")
        self.root.listeners.append(self._on_root_event)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(Exception):
            if not self.root.channel.closed.done():
                await self.root.request("disconnect", {"terminateDebuggee": True}, timeout=10)
        for session in (*self.children.values(), self.root):
            await session.close()
        try:
            await asyncio.wait_for(self.hub.wait(), 10)
        except (asyncio.TimeoutError, TimeoutError):
            self.hub.kill()
            await self.hub.wait()
            raise AssertionError("the hub did not end by itself") from None
        finally:
            self.folder.cleanup()

    # --- sessions ---------------------------------------------------------------------------------

    async def _connect(self, name: str) -> Session:
        reader, writer = await asyncio.open_unix_connection(self.socket)
        session = Session(Channel(reader, writer), name, self.answers)
        session.listeners.append(self._on_any_event)
        arguments = {
            "clientID": "fake-editor",
            "adapterID": "rankscope",
            "pathFormat": "path",
            "supportsProgressReporting": True,
            "supportsVariablePaging": True,
            "supportsRankscopeChildren": self.opens_children,
            **self.client,
        }
        await session.request("initialize", arguments)
        return session

    def _start(self, work: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _on_root_event(self, event: str, body: dict[str, Any]) -> None:
        if event == "rankscope/startChild":
            self._start(self.open_child(body["configuration"]))

    def _on_any_event(self, event: str, _body: dict[str, Any]) -> None:
        async def tell() -> None:
            async with self._stop_news:
                self._stop_news.notify_all()

        if event == "stopped":
            self._start(tell())

    async def open_child(self, configuration: dict[str, Any]) -> Session:
        name = str(configuration["session"]["ranks"])
        session = await self._connect(name)
        self.children[name] = session
        await self._configure(session, "attach", configuration)
        return session

    async def _configure(self, session: Session, command: str, arguments: dict[str, Any]) -> Any:
        started = asyncio.ensure_future(session.request(command, arguments))
        ready = asyncio.ensure_future(session.wait_for("initialized"))
        await asyncio.wait([started, ready], return_when=asyncio.FIRST_COMPLETED)
        if started.done():
            ready.cancel()
            return started.result()
        for path, breakpoints in self.breakpoints.items():
            await session.request("setBreakpoints", {"source": {"path": path}, "breakpoints": breakpoints})
        await session.request("setExceptionBreakpoints", self.filters)
        await session.request("configurationDone")
        return await started

    async def launch(self, **arguments: Any) -> None:
        """Send ``launch``, the breakpoints and ``configurationDone``; returns when the job runs."""
        await self._configure(self.root, "launch", {"console": "internalConsole", **arguments})

    @property
    def sessions(self) -> list[Session]:
        return [self.root, *self.children.values()]

    # --- breakpoints ------------------------------------------------------------------------------

    async def set_breakpoints(self, path: str | Path, *marks: str | dict[str, Any]) -> list[dict[str, Any]]:
        """Replace a file's breakpoints: ``"mark"``, ``"mark @ranks"``, or DAP fields with ``mark`` for the line."""
        requests = []
        for mark in marks:
            fields = dict(mark) if isinstance(mark, dict) else {}
            name, _, ranks = (fields.pop("mark") if isinstance(mark, dict) else mark).partition(" @")
            fields["line"] = line_of(path, name.strip())
            if ranks:
                fields["condition"] = f"{fields.get('condition', 'True')}  # @{ranks}"
            requests.append(fields)
        self.breakpoints[str(path)] = requests
        if not any(event == "initialized" for event, _ in self.root.events):
            return []  # sent with the launch
        arguments = {"source": {"path": str(path)}, "breakpoints": requests}
        answers = await asyncio.gather(*(session.request("setBreakpoints", arguments) for session in self.sessions))
        return list(answers[0]["breakpoints"])

    # --- stops ------------------------------------------------------------------------------------

    def _next_stop(self, accept: Callable[[Stop], bool]) -> Stop | None:
        for session in self.sessions:
            for event, body in session.events:
                if event == "stopped" and id(body) not in self._taken:
                    stop = Stop(session, body)
                    if accept(stop):
                        self._taken.add(id(body))
                        return stop
        return None

    async def wait_for_stop(
        self, session: str | None = None, accept: Callable[[Stop], bool] = lambda _: True, timeout: float = WAIT_SECONDS
    ) -> Stop:
        """The next stop not yet taken: of one session by name, or of any."""

        def wanted(stop: Stop) -> bool:
            return (session is None or stop.session.name == session) and accept(stop)

        async def wait() -> Stop:
            async with self._stop_news:
                while (found := self._next_stop(wanted)) is None:
                    await self._stop_news.wait()
                return found

        try:
            return await asyncio.wait_for(wait(), timeout)
        except (asyncio.TimeoutError, TimeoutError):
            heard = "\n".join(
                f"  {s.name}: {event} {json.dumps(body)[:300]}" for s in self.sessions for event, body in s.events[-30:]
            )
            raise AssertionError(f"no stop within {timeout:g} s; heard\n{heard}") from None

    # --- the job ----------------------------------------------------------------------------------

    @property
    def output(self) -> str:
        """Everything printed so far, as the root's console has it."""
        return "".join(str(body.get("output", "")) for event, body in self.root.events if event == "output")

    @property
    def all_output(self) -> str:
        """The consoles of all sessions, one after the other."""
        return "".join(
            str(body.get("output", "")) for s in self.sessions for event, body in s.events if event == "output"
        )

    async def exit_code(self, timeout: float = WAIT_SECONDS) -> int:
        """Wait for the job's end."""
        return int((await self.root.wait_for("exited", timeout=timeout))["exitCode"])

    async def members(self) -> list[dict[str, Any]]:
        return list((await self.root.request("rankscope/ranks"))["members"])
