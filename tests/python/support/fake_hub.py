"""A small hub for tests of the agent's side: proves members, answers them, and drives their debugpy."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankscope.ranks import RankFacts
from rankscope.wire import frames
from rankscope.wire import messages as m
from rankscope.wire.auth import HubSide
from rankscope.wire.link import Endpoint, Sequencer

if TYPE_CHECKING:
    from typing_extensions import Self

PACKAGE = Path(__file__).resolve().parents[3] / "python_adapter"
SITE = PACKAGE / "rankscope" / "agent" / "site"
WAIT_SECONDS = 15.0


class FakeMember:
    """One member: its messages in order, and the stops of its debugger."""

    def __init__(self, hub: FakeHub, connection: socket.socket, hello: m.Hello) -> None:
        self.hub = hub
        self.hello = hello
        self.facts = RankFacts(**hello.facts)
        self.history = [self.facts]
        self.messages: list[m.Message] = [hello]
        self.stops: list[dict[str, Any]] = []
        self.has_ended = False
        self._connection = connection
        self._order = Sequencer()
        self._data = b""
        self._seq = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._asks = 0
        self._lock = threading.Lock()

    def send(self, message: m.Message) -> None:
        with self._lock:
            self._connection.sendall(frames.pack(self._order.wrap(m.encode(message))))

    def heartbeat(self) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._connection.sendall(frames.pack(self._order.heartbeat()))

    def ask(self, what: str, **arguments: Any) -> dict[str, Any]:
        self._asks += 1
        number = self._asks
        self.send(m.Ask(ask=number, what=what, arguments=arguments))

        def reply() -> m.Reply | None:
            return next((r for r in self.messages if isinstance(r, m.Reply) and r.ask == number), None)

        answer = self.hub.wait(reply)
        assert not answer.error, answer.error
        body: dict[str, Any] = answer.body
        return body

    def debug(self, command: str, **arguments: Any) -> dict[str, Any]:
        seq = self.request(command, **arguments)
        answer = self.hub.wait(lambda: self._answers.get(seq))
        assert answer["success"], answer
        body: dict[str, Any] = answer.get("body") or {}
        return body

    def request(self, command: str, **arguments: Any) -> int:
        self._seq += 1
        body = json.dumps({"seq": self._seq, "type": "request", "command": command, "arguments": arguments}).encode()
        self.send(m.Dap(data=b"Content-Length: %d\r\n\r\n" % len(body) + body))
        return self._seq

    def go_on(self) -> dict[str, Any]:
        """Take the next stop, give back its innermost frame, and continue."""
        stop = self.hub.wait(lambda: self.stops[0] if self.stops else None)
        thread = stop["threadId"]
        frame: dict[str, Any] = self.debug("stackTrace", threadId=thread)["stackFrames"][0]
        self.stops.pop(0)
        self.request("continue", threadId=thread)  # the process may end before it answers
        return frame

    def serve(self, parser: frames.FrameParser) -> None:
        with contextlib.suppress(OSError):
            while True:
                while (frame := parser.next()) is not None:
                    raw = self._order.unwrap(frame)
                    message = m.decode(raw) if raw is not None else None
                    if message is not None:
                        self._handle(message)
                data = self._connection.recv(65536)
                if not data:
                    break
                parser.feed(data)
        self.has_ended = True
        self.hub.changed()

    def _handle(self, message: m.Message) -> None:
        if isinstance(message, m.Identity):
            self.facts = RankFacts(**message.facts)
            self.history.append(self.facts)
        self.messages.append(message)
        self.hub.changed()
        if isinstance(message, m.Dap):
            self._fed(message.data)
        elif isinstance(message, (m.Identity, m.ArmMe)):
            will_arm = isinstance(message, m.ArmMe) or self.hub.arms(self)
            self.send(m.Settled(answers=message.ask, will_arm=will_arm, files=self.hub.files))
            if will_arm and not any(isinstance(x, m.Armed) for x in self.messages):
                self.send(m.Arm())
        elif isinstance(message, m.Armed):
            assert not message.error, message.error
            self.request("initialize", adapterID="rankscope", clientID="test", pathFormat="path")
            self.request("attach", justMyCode=False, redirectOutput=False)

    def _fed(self, data: bytes) -> None:
        self._data += data
        while b"\r\n\r\n" in self._data:
            head, _, rest = self._data.partition(b"\r\n\r\n")
            size = int(head.split(b":")[1].split(b"\r\n")[0])
            if len(rest) < size:
                return
            message, self._data = json.loads(rest[:size]), rest[size:]
            if message["type"] == "response":
                self._answers[message["request_seq"]] = message
            elif message.get("event") == "initialized":
                for path, lines in self.hub.breakpoints.items():
                    wanted = [{"line": line} for line in lines]
                    self.request("setBreakpoints", source={"path": path}, breakpoints=wanted)
                self.request("configurationDone")
                self.send(m.Ready())
            elif message.get("event") == "stopped":
                self.stops.append(message["body"])
            self.hub.changed()


class FakeHub:
    """Listens for members of one job; a context manager. ``breakpoints`` maps paths to lines."""

    def __init__(self, folder: Path, breakpoints: dict[str, list[int]] | None = None, **settings: Any) -> None:
        self.breakpoints = breakpoints or {}
        self.files = list(self.breakpoints)
        self.arms: Callable[[FakeMember], bool] = lambda member: bool(self.files) and member.hello.waits
        self.members: list[FakeMember] = []
        self._server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.endpoint = Endpoint("job", "127.0.0.1", self._server.getsockname()[1], secrets.token_hex(16), **settings)
        self.job_file = folder / "job.json"
        self.endpoint.save(self.job_file)
        self._news = threading.Condition()
        self._is_over = threading.Event()
        self._connections: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        threading.Thread(target=self._live, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for sock in (self._server, *self._connections):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def environment(self, **more: str) -> dict[str, str]:
        drop = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "RANKSCOPE_PARENT")
        inherited = {key: value for key, value in os.environ.items() if key not in drop}
        return {
            **inherited,
            "RANKSCOPE_JOB": "job",
            "RANKSCOPE_JOB_FILE": str(self.job_file),
            "RANKSCOPE_DEBUG": "1",
            "RAY_RUNTIME_ENV_HOOK": "rankscope.agent.ray_hook.runtime_env_hook",
            "PYTHONPATH": os.pathsep.join((str(SITE), str(PACKAGE))),
            **more,
        }

    @contextlib.contextmanager
    def job(self, *argv: str, **env: str) -> Iterator[subprocess.Popen[str]]:
        """A Python program of the job; killed at the end if it still runs."""
        with subprocess.Popen(
            [sys.executable, *argv],
            env=self.environment(**env),
            stdin=subprocess.PIPE,  # a program that reads waits, whatever the test runner's own is
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def wait(self, answer: Callable[[], Any], seconds: float = WAIT_SECONDS) -> Any:
        """What ``answer`` gives once it is true; fails after a bound."""
        deadline = time.monotonic() + seconds
        with self._news:
            while not (found := answer()):
                left = deadline - time.monotonic()
                assert left > 0, f"not in {seconds} s; members: {[(x.hello.name, x.facts) for x in self.members]}"
                self._news.wait(min(left, 0.2))
        return found

    def member(self, test: Callable[[FakeMember], Any]) -> FakeMember:
        found: FakeMember = self.wait(lambda: next((x for x in list(self.members) if test(x)), None))
        return found

    def pause(self, seconds: float) -> None:
        """Let time pass, as a person at a breakpoint does, while the links stay alive."""
        end = time.monotonic() + seconds
        self.wait(lambda: time.monotonic() > end)

    def changed(self) -> None:
        with self._news:
            self._news.notify_all()

    def _live(self) -> None:
        while not self._is_over.wait(1.0):
            for member in list(self.members):
                member.heartbeat()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                self._connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        parser = frames.FrameParser()
        side = HubSide(bytes.fromhex(self.endpoint.secret), "job")

        def receive() -> dict[str, Any]:
            while (raw := parser.next()) is None:
                data = connection.recv(65536)
                if not data:
                    raise ConnectionResetError
                parser.feed(data)
            return raw

        with contextlib.suppress(OSError):
            connection.sendall(frames.pack(side.challenge(receive())))
            side.check(receive())
            connection.sendall(frames.pack({"ok": True}))
            parser.limit = frames.MAX_FRAME
            hello = m.decode(receive()["hello"])
            assert isinstance(hello, m.Hello)
            connection.sendall(frames.pack({"seen": 0}))
            member = FakeMember(self, connection, hello)
            will_arm = self.arms(member)
            member.send(m.Welcome(will_arm=will_arm, files=self.files))
            if will_arm:
                member.send(m.Arm())
            self.members.append(member)
            self.changed()
            member.serve(parser)
