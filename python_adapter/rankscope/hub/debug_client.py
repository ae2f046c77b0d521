"""The DAP conversation with one member's debugpy, over its relayed bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from rankscope.dap.framing import Parser, encode
from rankscope.dap.messages import DapError


class DebugClient:
    """Requests to, and events from, the debugpy of one member. :meth:`close` fails what is pending.

    ``send`` takes bytes for debugpy, ``on_event`` each event's name and body.
    """

    def __init__(self, send: Callable[[bytes], None], on_event: Callable[[str, dict[str, Any]], None]) -> None:
        self._send = send
        self._on_event = on_event
        self._parser = Parser()
        self._seq = 0
        self._pending: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._is_closed = False

    async def request(self, command: str, arguments: dict[str, Any] | None, timeout: float) -> dict[str, Any]:
        """The body of the answer. Raises :class:`DapError`, or ``TimeoutError`` after ``timeout`` seconds."""
        if self._is_closed:
            raise DapError("the debugger is not connected")
        self._seq += 1
        seq = self._seq
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._pending[seq] = future
        message = {"seq": seq, "type": "request", "command": command, "arguments": arguments or {}}
        self._send(encode(message))
        try:
            return await asyncio.wait_for(future, timeout)
        finally:
            self._pending.pop(seq, None)

    def feed(self, data: bytes) -> None:
        """Bytes from debugpy. Raises what the parser raises on bytes that are no DAP."""
        for message in self._parser.feed(data):
            if message.get("type") == "event":
                self._on_event(str(message.get("event")), message.get("body") or {})
            elif message.get("type") == "response":
                self._answered(message)
            elif message.get("type") == "request":
                self._refuse(message)

    def close(self, why: str) -> None:
        """Fail every pending request; idempotent."""
        self._is_closed = True
        for future in self._pending.values():
            if not future.done():
                future.set_exception(DapError(why))

    def _answered(self, message: dict[str, Any]) -> None:
        future = self._pending.get(message.get("request_seq", -1))
        if future is None or future.done():
            return
        if message.get("success"):
            future.set_result(message.get("body") or {})
        else:
            error = (message.get("body") or {}).get("error") or {}
            text = message.get("message") or error.get("format") or json.dumps(message)
            future.set_exception(DapError(str(text)))

    def _refuse(self, message: dict[str, Any]) -> None:
        self._seq += 1
        self._send(
            encode(
                {
                    "seq": self._seq,
                    "type": "response",
                    "request_seq": message.get("seq"),
                    "command": message.get("command"),
                    "success": False,
                    "message": "not supported",
                }
            )
        )
