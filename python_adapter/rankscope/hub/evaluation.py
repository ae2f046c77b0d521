"""One expression on many ranks at once, each in a frame of its own, within one bound.

A stopped rank evaluates it aside of its stopped thread (:mod:`rankscope.agent.evaluate`), which is reached through its
debugpy; a running one looks names, attributes and indexes up (:mod:`rankscope.agent.lookup`); a record knows the same
of what was kept. Answers are whatever came: :func:`rankscope.hub.compare.row` reads them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rankscope.dap.messages import DapError
from rankscope.hub.kept_member import KeptMember
from rankscope.hub.run_control import main_stop
from rankscope.hub.top_frames import own_frames

if TYPE_CHECKING:
    from rankscope.hub.member import Member
    from rankscope.hub.paths import Paths

_GRACE = 0.5
_LEVELS = 200

Frame = dict[str, Any]
Answer = dict[str, Any]


@dataclass(frozen=True)
class Function:
    """The function of a selected frame: its name, the client's path, and the how-manieth of its calls from outside."""

    name: str
    path: str
    depth: int


@dataclass(frozen=True)
class Question:
    """``seconds`` is each rank's bound. In a frame of ``function`` where it is given, else in the top own frame.

    ``keep``: a word under which ranks hold a tensor, for :mod:`rankscope.hub.delta`.
    """

    expression: str
    seconds: float
    function: Function | None = None
    keep: str = ""


async def function_of(member: Member, frame_id: int, paths: Paths) -> Function:
    """Which function a frame of a stopped member is in. Raises :class:`DapError` when it is there no more."""
    frames = await _stack(member)
    chosen = next((frame for frame in frames if frame.get("id") == frame_id), None)
    if chosen is None:
        raise DapError(f"{member.label} has run on since: choose a frame again.", "stale-id")
    name, path = str(chosen.get("name")), _path(chosen, paths)
    calls = [frame["id"] for frame in frames if (str(frame.get("name")), _path(frame, paths)) == (name, path)]
    return Function(name, path, calls[::-1].index(frame_id))


async def ask(members: Sequence[Member], question: Question, paths: Paths) -> list[Answer]:
    """Everybody's answer, in their order, within ``question.seconds`` and a little."""

    async def one(member: Member) -> Answer:
        if not member.is_live:
            return _error(f"has {member.state}" + (f": {member.ending}" if member.ending else ""))
        try:
            return await asyncio.wait_for(_answer(member, question, paths), question.seconds + _GRACE)
        except (TimeoutError, asyncio.TimeoutError):
            return {"kind": "late", "text": f"no answer within {question.seconds:g} s", "type": ""}
        except DapError as e:
            return _error(str(e)) if member.stopped or not member.is_live else _error("has run on meanwhile")

    return list(await asyncio.gather(*(one(member) for member in members)))


async def _answer(member: Member, question: Question, paths: Paths) -> Answer:
    if not member.stopped:
        return await _looked_up(member, question, paths)
    frame = _chosen(member, await _stack(member), question.function, paths)
    where = {"name": frame.get("name"), "path": _path(frame, paths), "line": frame.get("line")}
    record: object = member
    if isinstance(record, KeptMember):
        return {"frame": where, **await _kept(record, question.expression, int(frame["id"]))}

    async def begin(number: int) -> None:
        told = json.dumps({"expression": question.expression, "seconds": question.seconds, "keep": question.keep})
        start = f"__import__('rankscope.agent.evaluate', None, None, ['start']).start({number}, {told!r})"
        passed = {"expression": start, "frameId": frame["id"], "context": "watch"}
        await member.debug("evaluate", passed, timeout=question.seconds)

    return {"frame": where, **await member.replied(begin, timeout=question.seconds + _GRACE)}


async def _stack(member: Member) -> list[Frame]:
    thread = {"threadId": main_stop(member), "startFrame": 0, "levels": _LEVELS}
    return (await member.debug("stackTrace", thread)).get("stackFrames") or []


def _chosen(member: Member, frames: list[Frame], function: Function | None, paths: Paths) -> Frame:
    """Raises :class:`DapError` when there is no such frame."""
    if function is None:
        return _first([*own_frames(member, frames), *frames])
    wanted = (function.name, function.path)
    calls = [frame for frame in frames if (str(frame.get("name")), _path(frame, paths)) == wanted][::-1]
    if not calls:
        top = _first(own_frames(member, frames) or frames)
        raise DapError(f"is not in {function.name} but in {top.get('name')}, line {top.get('line')}")
    return calls[min(function.depth, len(calls) - 1)]


def _first(frames: list[Frame]) -> Frame:
    if not frames:
        raise DapError("has no Python frame")
    return frames[0]


def _path(frame: Frame, paths: Paths) -> str:
    return paths.in_client(str((frame.get("source") or {}).get("path") or ""))


async def _kept(member: KeptMember, expression: str, frame: int) -> Answer:
    """The text of a value that a record holds; of a number, the number."""
    found = await member.debug("evaluate", {"expression": expression, "frameId": frame})
    text, kind = str(found.get("result")), str(found.get("type"))
    told = {"text": text, "type": kind}
    if kind in ("int", "float"):
        return {"kind": "number", "value": float(text) if kind == "float" else int(text), **told}
    return {"kind": "text", **told}


async def _looked_up(member: Member, question: Question, paths: Paths) -> Answer:
    function = question.function
    asked: dict[str, Any] = {"expression": question.expression}
    if function is not None:
        asked |= {"name": function.name, "paths": await paths.in_member(member, function.path)}
    found = await member.ask("lookup", asked, timeout=question.seconds)
    where = found.get("frame")
    if isinstance(where, dict):
        found["frame"] = {**where, "path": paths.in_client(str(where.get("path")))}
    if found.get("kind"):
        return found
    running = f"in {found['call']}" if found.get("call") else "running"
    if function is not None and where is None:
        running += f", not in {function.name}"
    return {**found, "kind": "running", "text": running, "type": ""}


def _error(text: str) -> Answer:
    return {"kind": "error", "text": text, "type": ""}
