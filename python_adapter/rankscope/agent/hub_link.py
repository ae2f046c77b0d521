"""The agent's end of the link: one outbound socket, proved, numbered, resumed after a break."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

from rankscope.wire import frames
from rankscope.wire.auth import AgentSide, Refused
from rankscope.wire.link import Endpoint, LinkBroken, Sequencer
from rankscope.wire.messages import Hello, Message, decode, encode

CONNECT_SECONDS = 3.0
_CHUNK = 1 << 16


class HubLink:
    """Used by the agent's thread alone. Owns the socket; :meth:`close` ends it.

    Messages sent while there is no connection are kept and go out after the next one.
    """

    def __init__(self, endpoint: Endpoint, hello: Hello) -> None:
        self.hello = hello
        self.socket: socket.socket | None = None
        self.heard_at = time.monotonic()
        self.spoke_at = self.heard_at
        self._endpoint = endpoint
        self._order = Sequencer()
        self._parser = frames.FrameParser()
        self._out = bytearray()
        self._was_known = False

    def connect(self) -> None:
        """Connect and prove both sides, within ``CONNECT_SECONDS``.

        Raises ``OSError`` (may be tried again), :class:`Refused` or :class:`LinkBroken` (may not).
        """
        deadline = time.monotonic() + CONNECT_SECONDS
        sock = socket.create_connection((self._endpoint.host, self._endpoint.port), timeout=CONNECT_SECONDS)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            parser = frames.FrameParser()
            side = AgentSide(bytes.fromhex(self._endpoint.secret), self._endpoint.job)
            sock.sendall(frames.pack(side.open()))
            sock.sendall(frames.pack(side.answer(_receive(sock, parser, deadline))))
            _refuse(_receive(sock, parser, deadline))
            parser.limit = frames.MAX_FRAME
            sock.sendall(
                frames.pack({"hello": encode(self.hello), "seen": self._order.received, "resumes": self._was_known})
            )
            answer = _refuse(_receive(sock, parser, deadline))
            pending = self._order.resume(int(answer["seen"]))
        except (KeyError, ValueError, frames.FrameError) as e:
            sock.close()
            raise Refused(f"the hub's handshake is malformed: {e}") from e
        except BaseException:
            sock.close()
            raise
        sock.setblocking(False)
        self.socket, self._parser, self._was_known = sock, parser, True
        self._out = bytearray(b"".join(frames.pack(frame) for frame in pending))
        self.heard_at = self.spoke_at = time.monotonic()
        self._flush()

    @property
    def wants_to_write(self) -> bool:
        """Whether bytes wait for the socket to take them."""
        return bool(self._out)

    def send(self, message: Message) -> None:
        """Number a message and send it now or after the next connect. Raises :class:`LinkBroken`."""
        self._write(frames.pack(self._order.wrap(encode(message))))

    def heartbeat(self) -> None:
        """Say that we live, and what has arrived."""
        self._write(frames.pack(self._order.heartbeat()))

    def on_writable(self) -> None:
        """Send what waits. Raises ``OSError``."""
        self._flush()

    def on_readable(self) -> Iterator[Message]:
        """The messages that have arrived. Raises ``OSError`` at the end, or what the frames deserve."""
        if self.socket is None:
            return
        try:
            data = self.socket.recv(_CHUNK)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionResetError("the hub closed the link")
        self.heard_at = time.monotonic()
        self._parser.feed(data)
        yield from self.arrived()

    def arrived(self) -> Iterator[Message]:
        """The messages that are whole already; some come along with the end of the handshake."""
        while (frame := self._parser.next()) is not None:
            raw = self._order.unwrap(frame)
            if raw is not None and (message := decode(raw)) is not None:
                yield message
        if self._order.owes_ack:
            self.heartbeat()

    def close(self) -> None:
        """Drop the connection; the order of messages is kept for the next."""
        if self.socket is not None:
            self.socket.close()
            self.socket = None
        self._out.clear()

    def _write(self, data: bytes) -> None:
        self.spoke_at = time.monotonic()
        if self.socket is not None:
            self._out += data
            self._flush()

    def _flush(self) -> None:
        while self._out and self.socket is not None:
            try:
                sent = self.socket.send(self._out)
            except BlockingIOError:
                return
            del self._out[:sent]


def _receive(sock: socket.socket, parser: frames.FrameParser, deadline: float) -> dict[str, Any]:
    while (raw := parser.next()) is None:
        sock.settimeout(max(0.01, deadline - time.monotonic()))
        data = sock.recv(4096)
        if not data:
            raise ConnectionResetError("the hub closed the link during the handshake")
        if time.monotonic() > deadline:
            raise TimeoutError("the hub's handshake took too long")
        parser.feed(data)
    return raw


def _refuse(raw: dict[str, Any]) -> dict[str, Any]:
    if "refused" in raw:
        raise Refused(str(raw["refused"]))
    return raw


__all__ = ["HubLink", "LinkBroken", "Refused"]
