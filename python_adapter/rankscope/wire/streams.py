"""Frames from an asyncio stream: the hub's end. The agent's end never imports asyncio."""

from __future__ import annotations

import asyncio
from typing import Any

from rankscope.wire import frames


async def read(reader: asyncio.StreamReader, limit: int = frames.MAX_FRAME) -> dict[str, Any]:
    """Read one frame. Raises ``FrameError``, or ``asyncio.IncompleteReadError`` at the end."""
    size: int = frames.HEAD.unpack(await reader.readexactly(frames.HEAD.size))[0]
    if size > limit:
        raise frames.FrameError(f"a frame of {size} bytes, more than {limit}")
    return frames.unpack(await reader.readexactly(size))
