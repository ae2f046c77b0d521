"""Where members stand: of each its innermost frame of the person's own code, all within one bound."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rankscope.dap.messages import DapError
from rankscope.hub.run_control import main_stop
from rankscope.hub.stacks import kind_of

if TYPE_CHECKING:
    from rankscope.hub.member import Member
    from rankscope.hub.paths import Paths

SECONDS = 0.5
_LEVELS = 50

TopFrame = dict[str, Any]


async def of(members: Sequence[Member], paths: Paths) -> tuple[dict[str, TopFrame | None], list[str]]:
    """By member id: name, the client's path, line and the blocking call; ``None`` where there is no own code.

    The second are the ids of those that have not answered within :data:`SECONDS`.
    """
    late: list[str] = []

    async def one(member: Member) -> TopFrame | None:
        if not member.is_live or member.facts.role == "idle":
            return None
        try:
            found = await (_stopped(member) if member.stopped else _running(member))
        except (TimeoutError, asyncio.TimeoutError):
            late.append(member.id)
            return None
        except DapError:  # it ran on, or ended, while it was asked
            return None
        return found and {**found, "path": paths.in_client(found["path"])}

    frames = await asyncio.gather(*(one(member) for member in members))
    answers = {member.id: frame for member, frame in zip(members, frames, strict=True)}
    return {name: frame for name, frame in answers.items() if name not in late}, late


async def _running(member: Member) -> TopFrame | None:
    answer = await member.look()
    frame = answer.get("frame")
    if not isinstance(frame, dict):
        return None
    return {
        "name": str(frame.get("name", "")),
        "path": str(frame.get("path", "")),
        "line": int(frame.get("line") or 0),
        "call": str(frame.get("call", "")),
    }


async def _stopped(member: Member) -> TopFrame | None:
    """Of the thread that stopped: where its breakpoint is, else the innermost frame that is no library's."""
    thread = main_stop(member)
    ask = {"threadId": thread, "startFrame": 0, "levels": _LEVELS}
    own = own_frames(member, (await member.debug("stackTrace", ask, timeout=SECONDS)).get("stackFrames") or [])
    if not own:
        return None
    path = (own[0].get("source") or {}).get("path") or ""
    return {"name": str(own[0].get("name", "")), "path": path, "line": int(own[0].get("line") or 0), "call": ""}


def own_frames(member: Member, frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of the stack of the thread that stopped: from its breakpoint on, else those that are no library's."""
    is_hit = bool(member.stopped[main_stop(member)].get("hitBreakpointIds"))
    return frames if is_hit else [frame for frame in frames if not _is_library(frame)]


def _is_library(frame: dict[str, Any]) -> bool:
    return kind_of((frame.get("source") or {}).get("path") or "") == "library"
