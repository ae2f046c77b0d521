"""What wakes the agent's thread: calls from other threads, and its sockets."""

from __future__ import annotations

import contextlib
import selectors
import socket
from collections import deque
from collections.abc import Callable, Iterator, Mapping

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE


class Inbox:
    """Owns the calls that wait, the pair of sockets that announces them, and the selector."""

    def __init__(self) -> None:
        self._selector = selectors.PollSelector()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._calls: deque[Callable[[], None]] = deque()

    def call(self, call: Callable[[], None]) -> None:
        """From any thread: let the agent's thread call this."""
        self._calls.append(call)
        with contextlib.suppress(OSError):
            self._wake_out.send(b"x")

    @property
    def has_calls(self) -> bool:
        """Whether calls wait."""
        return bool(self._calls)

    def run_calls(self) -> None:
        """Call what waits, in order."""
        while self._calls:
            self._calls.popleft()()

    def wait(self, watched: Mapping[socket.socket, int], patience: float) -> Iterator[tuple[socket.socket, int]]:
        """The sockets that are ready for what they are watched for, within ``patience`` seconds; early for a call."""
        self._watch({**watched, self._wake_in: READ})
        for key, mask in self._selector.select(patience):
            sock = key.fileobj
            assert isinstance(sock, socket.socket)
            if sock is self._wake_in:
                with contextlib.suppress(BlockingIOError):
                    sock.recv(4096)
            else:
                yield sock, mask

    def _watch(self, wanted: Mapping[socket.socket, int]) -> None:
        for key in list(self._selector.get_map().values()):
            sock = key.fileobj
            if not isinstance(sock, socket.socket) or wanted.get(sock) != key.events:
                self._selector.unregister(sock)
        known = {key.fileobj for key in self._selector.get_map().values()}
        for sock, events in wanted.items():
            if sock not in known:
                self._selector.register(sock, events)

    def close(self) -> None:
        """In a forked child, or at the end: close what announces calls."""
        for sock in (self._wake_in, self._wake_out):
            with contextlib.suppress(OSError):
                sock.close()
