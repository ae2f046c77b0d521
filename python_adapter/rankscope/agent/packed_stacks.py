"""Every thread's frames in few bytes, made within a millisecond or two: what the hub merges over all ranks.

Nothing is stopped and nothing armed for it. Equal stacks give equal bytes, so that the hub reads them once.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from types import CodeType, FrameType
from typing import Any

import msgpack

from rankscope.agent import stacks, top

_MAX_THREADS = 256
_HEAD_FRAMES, _TAIL_FRAMES = 150, 50
_LOCALS_SECONDS = 0.03
_DEBUGGER = f"{os.sep}debugpy{os.sep}_vendored{os.sep}"


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """The agent's answer to ``stacks``: :func:`packed`, or without ``packed`` the plain one."""
    return packed(with_locals=bool(arguments.get("locals"))) if arguments.get("packed") else stacks.stacks(arguments)


def packed(*, with_locals: bool = False) -> dict[str, Any]:
    """``packed``: msgpack of ``[paths, codes, threads, left_out]``; the main thread is the first.

    A code is ``[name, number of its path, is own]``; a thread ``[name, blocking call, frames]``, its frames
    a flat ``[number of a code, line, …]``, outermost first. The main thread's name is empty.
    ``locals``: per thread ``[its number, [[name, text], …]]`` of the innermost own frame, bounded; no code of the
    person's runs.
    """
    threads = {thread.ident: thread for thread in threading.enumerate()}
    main = threading.main_thread().ident
    # Python's own and only list of all frames; private by name, documented all the same.
    running = [
        (ident, frame) for ident, frame in sys._current_frames().items() if not stacks.is_ours(threads.get(ident))
    ]
    named = [
        ("" if ident == main else threads[ident].name if ident in threads else "Thread", frame)
        for ident, frame in running
    ]
    named.sort(key=lambda pair: pair[0])
    table = _Table()
    found = [(table.thread(name, frame), frame) for name, frame in named[:_MAX_THREADS]]
    left_out = max(0, len(named) - _MAX_THREADS)
    whole = [list(table.paths), table.codes, [thread for thread, _ in found], left_out]
    answered: dict[str, Any] = {"packed": msgpack.packb(whole)}
    if with_locals:
        until = time.monotonic() + _LOCALS_SECONDS
        own = ((number, _innermost_own(frame)) for number, (_, frame) in enumerate(found))
        answered["locals"] = [[number, _locals(frame, until)] for number, frame in own if frame is not None]
    return answered


class _Table:
    """The paths and codes of one answer, each once."""

    def __init__(self) -> None:
        self.paths: dict[str, int] = {}
        self.codes: list[list[Any]] = []
        self._numbers: dict[int, int | None] = {}  # by id: a code's own hash reads all of it

    def thread(self, name: str, innermost: FrameType) -> list[Any]:
        """One thread, its frames outermost first, without those of RankScope and the debugger."""
        frames: list[tuple[int, int]] = []
        call = ""
        is_inside = True
        frame: FrameType | None = innermost
        while frame is not None:
            number = self._number(frame.f_code)
            if number is not None:
                frames.append((number, frame.f_lineno or 0))
                if is_inside:
                    is_inside = not self.codes[number][2]
                    # the outermost wins: all_reduce rather than the wait inside it
                    call = (top.call_of(frame) if is_inside else "") or call
            frame = frame.f_back
        frames.reverse()
        left_out = len(frames) - _HEAD_FRAMES - _TAIL_FRAMES
        if left_out > 0:
            self.codes.append([f"… {left_out} frames left out", self.paths.setdefault("", len(self.paths)), False])
            frames = [*frames[:_HEAD_FRAMES], (len(self.codes) - 1, 0), *frames[-_TAIL_FRAMES:]]
        return [name, call, [value for pair in frames for value in pair]]

    def _number(self, code: CodeType) -> int | None:
        if id(code) in self._numbers:
            return self._numbers[id(code)]
        path = code.co_filename
        number = None
        if _DEBUGGER not in path and not stacks.is_our_file(path):
            number = len(self.codes)
            name = getattr(code, "co_qualname", code.co_name)  # Python 3.11 and later
            at = self.paths.setdefault(path, len(self.paths))
            self.codes.append([name, at, stacks.is_own_file(path)])
        self._numbers[id(code)] = number
        return number


def _innermost_own(frame: FrameType | None) -> FrameType | None:
    while frame is not None and not stacks.is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _locals(frame: FrameType, until: float) -> list[list[str]]:
    """A frame's variables in one line each."""
    from rankscope.postmortem import dump, values  # loaded where they are asked for, not in every process

    keeper = values.Keeper(values.Limits(values=60, width=40, text=120, depth=0, seconds=_LOCALS_SECONDS))
    node = keeper.keep_named(dump.variables_of(frame))
    keeper.run(until)
    return [[name, keeper.nodes[number]["text"]] for name, number in node.get("kids", ())]
