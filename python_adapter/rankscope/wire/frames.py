"""Frames: 4 bytes of big-endian length, then one msgpack map. No pickle, and a size limit before reading."""

from __future__ import annotations

import struct
from typing import Any

import msgpack

MAX_FRAME = 64 * 1024 * 1024
MAX_HANDSHAKE_FRAME = 4096
HEAD = struct.Struct(">I")


class FrameError(Exception):
    """Bytes that are no frame: too long, not msgpack, or not a map."""


def pack(raw: dict[str, Any]) -> bytes:
    """One frame, length included."""
    body: bytes = msgpack.packb(raw, use_bin_type=True)
    if len(body) > MAX_FRAME:
        raise FrameError(f"a frame of {len(body)} bytes, more than {MAX_FRAME}")
    return HEAD.pack(len(body)) + body


def unpack(body: bytes) -> dict[str, Any]:
    """The map in a frame's body. Raises :class:`FrameError`."""
    try:
        raw = msgpack.unpackb(body, raw=False)
    except (ValueError, msgpack.UnpackException) as e:
        raise FrameError(f"not msgpack: {e}") from e
    if not isinstance(raw, dict):
        raise FrameError(f"a {type(raw).__name__} where a map is due")
    return raw


class FrameParser:
    """Cuts a byte stream into frames. ``limit`` may be raised once the peer has proved itself."""

    def __init__(self, limit: int = MAX_HANDSHAKE_FRAME) -> None:
        self.limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Add bytes that have arrived."""
        self._buffer += data

    def next(self) -> dict[str, Any] | None:
        """The next whole frame, if there is one. Raises :class:`FrameError`."""
        if len(self._buffer) < HEAD.size:
            return None
        size: int = HEAD.unpack_from(self._buffer)[0]
        if size > self.limit:
            raise FrameError(f"a frame of {size} bytes, more than {self.limit}")
        end = HEAD.size + size
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[HEAD.size : end])
        del self._buffer[:end]
        return unpack(body)
