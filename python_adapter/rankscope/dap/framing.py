"""DAP's framing: a ``Content-Length`` header, an empty line, JSON in UTF-8."""

from __future__ import annotations

import json
from typing import Any

MAX_BODY = 64 << 20
MAX_HEADER = 8192
_END = b"\r\n\r\n"


class FramingError(ValueError):
    """The bytes are no DAP, or more than the limit allows. The connection cannot be used further."""


def encode(message: dict[str, Any]) -> bytes:
    """The bytes of one message. Raises :class:`FramingError` beyond :data:`MAX_BODY`."""
    body = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "backslashreplace")
    if len(body) > MAX_BODY:
        raise FramingError(f"a message of {len(body)} bytes is more than the {MAX_BODY} allowed")
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


class Parser:
    """Takes bytes as they come and gives back whole messages."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._length: int | None = None

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The messages that ``data`` completes. Raises :class:`FramingError` on what is no DAP."""
        self._data += data
        messages = []
        while (message := self._next()) is not None:
            messages.append(message)
        return messages

    def _next(self) -> dict[str, Any] | None:
        if self._length is None:
            end = self._data.find(_END)
            if end < 0:
                if len(self._data) > MAX_HEADER:
                    raise FramingError(f"no end of the header within {MAX_HEADER} bytes")
                return None
            self._length = _length(bytes(self._data[:end]))
            del self._data[: end + len(_END)]
        if len(self._data) < self._length:
            return None
        body = bytes(self._data[: self._length])
        del self._data[: self._length]
        self._length = None
        try:
            message = json.loads(body)
        except ValueError as e:
            raise FramingError(f"a message that is no JSON: {e}") from e
        if not isinstance(message, dict):
            raise FramingError("a message that is no JSON object")
        return message


def _length(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            text = value.strip()
            if not text.isdigit() or len(text) > 12:
                raise FramingError(f"Content-Length {text!r} is no number")
            length = int(text)
            if length > MAX_BODY:
                raise FramingError(f"a message of {length} bytes is more than the {MAX_BODY} allowed")
            return length
    raise FramingError(f"no Content-Length in the header {header[:80]!r}")
