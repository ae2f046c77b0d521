"""The last moment of one process: its exception chain, every thread's frames, their locals, within bounds.

A dump is plain data (dicts, lists, texts, numbers), ready for msgpack:

``version``, ``at`` (Unix time of this host), ``python``, ``argv``, ``env`` (secrets masked);
``exception``: ``{type, message, notes, frames, cause?, context?, members?}`` or ``None``, where ``frames`` are
numbers into ``frames``, outermost first; ``threads``: ``[{name, ident, isMain, isFailing, frames}]``, innermost
first; ``frames``: ``[{name, path, line, isUser, locals}]`` with ``locals`` the number of a scope node; ``nodes``:
see :mod:`rankscope.postmortem.values`; ``sources``: path → ``{sha256, text?}`` of the person's own files;
``cut``: what was left out, by reason.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import sys
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankscope.postmortem.values import DEFAULT_LIMITS, MASK, Keeper, Limits, bases_of, is_secret, type_name

VERSION = 1

_MAX_FRAMES = 400
_HEAD_FRAMES, _TAIL_FRAMES = 100, 50
_MAX_CHAIN = 20
_MAX_THREADS = 64
_MAX_SOURCE_BYTES = 200_000
_MAX_SOURCES = 40
_MESSAGE_SECONDS = 0.25
_MAX_MESSAGE = 4_000
# Until 3.12 a function's frame keeps the dict that was asked for, and all its values, as long as it runs.
_HOLDS_A_COPY = sys.version_info < (3, 13)
# The frame's, our variable's and the call's own; with one more it is what the person's locals() gave them.
_OWN_REFERENCES = 3
_OURS = f"{os.sep}rankscope{os.sep}"


@dataclass
class _Maker:
    """One dump under way. ``is_user`` says whether a file is the person's own."""

    is_user: Callable[[str], bool]
    keeper: Keeper
    frames: list[dict[str, Any]] = field(default_factory=list)
    known: dict[tuple[int, int], int] = field(default_factory=dict)
    scopes: list[tuple[dict[str, Any], types.FrameType]] = field(default_factory=list)
    cut: dict[str, int] = field(default_factory=dict)

    def frame(self, frame: types.FrameType, line: int) -> int | None:
        """The number of a frame; ``None`` beyond the bound."""
        key = (id(frame), line)
        if key in self.known:
            return self.known[key]
        if len(self.frames) >= _MAX_FRAMES:
            self.cut["frames"] = self.cut.get("frames", 0) + 1
            return None
        code = frame.f_code
        entry = {
            "name": getattr(code, "co_qualname", code.co_name),
            "path": code.co_filename,
            "line": line,
            "isUser": self.is_user(code.co_filename),
        }
        self.known[key] = len(self.frames)
        self.frames.append(entry)
        self.scopes.append((entry, frame))
        return self.known[key]

    def numbers(self, frames: Iterable[tuple[types.FrameType, int]]) -> list[int]:
        """The numbers of a stack's frames: of a very deep one the first and last."""
        found = [pair for pair in frames if _OURS not in pair[0].f_code.co_filename]
        if len(found) > _HEAD_FRAMES + _TAIL_FRAMES:
            left_out = len(found) - _HEAD_FRAMES - _TAIL_FRAMES
            self.cut["frames"] = self.cut.get("frames", 0) + left_out
            found = found[:_HEAD_FRAMES] + found[-_TAIL_FRAMES:]
        numbers = [self.frame(*pair) for pair in found]
        return [number for number in numbers if number is not None]

    def keep_locals(self) -> None:
        """Number every frame's variables, the person's own frames first: they are what is looked at."""
        self.scopes.sort(key=lambda pair: not pair[0]["isUser"])
        for entry, frame in self.scopes:
            names = variables_of(frame)
            entry["locals"] = len(self.keeper.nodes)
            node: dict[str, Any] = {}
            self.keeper.nodes.append(node)
            node.update(self.keeper.keep_named(names))
        self.scopes.clear()


def of_exception(
    error: BaseException,
    is_user: Callable[[str], bool],
    *,
    limits: Limits = DEFAULT_LIMITS,
    deadline: float | None = None,
) -> dict[str, Any]:
    """A dump of a process that fails by ``error``, called on the failing thread. Never raises ``Exception``."""
    maker = _Maker(functools.cache(is_user), Keeper(limits))
    exception = _exception(error, maker, set(), 0)
    threads = _threads(maker, failing=threading.get_ident())
    for thread in threads:
        if thread["isFailing"]:  # where it stood when it raised, not where it is now
            thread["frames"] = exception["frames"][::-1]
    return _finished(maker, exception, threads, deadline)


def of_exit(
    code: str, is_user: Callable[[str], bool], *, limits: Limits = DEFAULT_LIMITS, deadline: float | None = None
) -> dict[str, Any]:
    """A dump of a process whose calling thread is about to raise ``SystemExit`` with this code."""
    maker = _Maker(functools.cache(is_user), Keeper(limits))
    threads = _threads(maker, failing=None)
    stack: list[int] = []
    for thread in threads:
        if thread["ident"] == threading.get_ident():
            thread["isFailing"], stack = True, thread["frames"]
    return _finished(maker, {"type": "SystemExit", "message": code, "frames": stack[::-1]}, threads, deadline)


def of_now(
    is_user: Callable[[str], bool], *, limits: Limits = DEFAULT_LIMITS, deadline: float | None = None
) -> dict[str, Any]:
    """A dump of where every thread of this process is."""
    maker = _Maker(functools.cache(is_user), Keeper(limits))
    return _finished(maker, None, _threads(maker, failing=None), deadline)


def _finished(
    maker: _Maker, exception: dict[str, Any] | None, threads: list[dict[str, Any]], deadline: float | None
) -> dict[str, Any]:
    maker.keep_locals()
    maker.keeper.run(deadline)
    return {
        "version": VERSION,
        "at": time.time(),
        "python": sys.version.split()[0],
        "argv": [str(word)[:1000] for word in getattr(sys, "orig_argv", sys.argv)[:100]],
        "env": {name: MASK if is_secret(name) else text[:1000] for name, text in os.environ.items()},
        "exception": exception,
        "threads": threads,
        "frames": maker.frames,
        "nodes": maker.keeper.nodes,
        "sources": sources_of({frame["path"] for frame in maker.frames if frame["isUser"]}),
        "cut": {**maker.keeper.cut, **maker.cut},
    }


# --- exceptions -----------------------------------------------------------------------------------


def _exception(error: BaseException, maker: _Maker, seen: set[int], depth: int) -> dict[str, Any]:
    seen.add(id(error))
    found: dict[str, Any] = {
        "type": type_name(type(error)),
        "message": message_of(error),
        "frames": maker.numbers(_of_traceback(error.__traceback__)),
    }
    notes = getattr(error, "__notes__", None)
    if type(notes) is list:
        found["notes"] = [note[:_MAX_MESSAGE] for note in notes[:20] if type(note) is str]
    context = None if error.__suppress_context__ else error.__context__
    for key, other in (("cause", error.__cause__), ("context", context)):
        if other is not None and id(other) not in seen and depth < _MAX_CHAIN:
            found[key] = _exception(other, maker, seen, depth + 1)
    members = getattr(error, "exceptions", None) if _is_group(error) else None
    if type(members) is tuple:
        inner = [member for member in members if id(member) not in seen][:_MAX_CHAIN]
        found["members"] = [_exception(member, maker, seen, depth + 1) for member in inner if depth < _MAX_CHAIN]
    return found


def _is_group(error: BaseException) -> bool:
    return any(base.__name__ == "BaseExceptionGroup" for base in bases_of(error))


def message_of(error: BaseException) -> str:
    """An exception's own text. A ``__str__`` of the person's runs aside, for 0.25 s at most."""
    own = next((base for base in bases_of(error) if "__str__" in base.__dict__), BaseException)
    if own.__module__ == "builtins":
        return str(error)[:_MAX_MESSAGE]
    found: list[str] = []

    def ask() -> None:
        try:
            found.append(str(error)[:_MAX_MESSAGE])
        except BaseException as e:
            found.append(f"(its __str__ raised {type_name(type(e))})")

    aside = threading.Thread(target=ask, name="rankscope-message", daemon=True)
    aside.pydev_do_not_trace = True  # type: ignore[attr-defined]
    aside.is_pydev_daemon_thread = True  # type: ignore[attr-defined]
    aside.start()
    aside.join(_MESSAGE_SECONDS)
    return found[0] if found else "(its __str__ did not answer)"


def _of_traceback(traceback: types.TracebackType | None) -> Iterator[tuple[types.FrameType, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


# --- threads --------------------------------------------------------------------------------------


def _threads(maker: _Maker, failing: int | None) -> list[dict[str, Any]]:
    names = {thread.ident: thread for thread in threading.enumerate()}
    main = threading.main_thread().ident
    # Python's own and only list of all frames; private by name, documented all the same.
    running = [
        (ident, frame)
        for ident, frame in sys._current_frames().items()
        if not getattr(names.get(ident), "is_pydev_daemon_thread", False)
    ]
    running.sort(key=lambda pair: (pair[0] != failing, pair[0] != main))
    if len(running) > _MAX_THREADS:
        maker.cut["threads"] = len(running) - _MAX_THREADS
    return [
        {
            "name": names[ident].name if ident in names else f"Thread {ident}",
            "ident": ident,
            "isMain": ident == main,
            "isFailing": ident == failing,
            "frames": [] if ident == failing else maker.numbers(_outwards(frame)),
        }
        for ident, frame in running[:_MAX_THREADS]
    ]


def _outwards(frame: types.FrameType | None) -> Iterator[tuple[types.FrameType, int]]:
    while frame is not None:
        yield frame, frame.f_lineno or 0
        frame = frame.f_back


def _is_traced() -> bool:
    """Whether a debugger may be in the middle of a trace call, which writes a frame's copy back into it."""
    pydevd: Any = sys.modules.get("pydevd")
    return pydevd is not None and pydevd.get_global_debugger() is not None


def variables_of(frame: types.FrameType) -> dict[str, Any]:
    """A frame's variables; of a module's frame not the ones that every module has, nor what it imported."""
    try:
        held = frame.f_locals
        names = dict(held)
        is_function = frame.f_code.co_flags & inspect.CO_OPTIMIZED
        if _HOLDS_A_COPY and is_function and sys.getrefcount(held) <= _OWN_REFERENCES and not _is_traced():
            held.clear()
    except Exception:  # changed while it was read
        return {}
    if frame.f_code.co_name != "<module>":
        return names
    return {
        name: value
        for name, value in names.items()
        if not name.startswith("__") and types.ModuleType not in bases_of(value)
    }


def sources_of(paths: set[str]) -> dict[str, dict[str, str]]:
    """What the person's own files were when it happened: a hash, and the text of those that are not too long."""
    found = {}
    for path in sorted(paths)[:_MAX_SOURCES]:
        try:
            with Path(path).open("rb") as file:
                raw = file.read(_MAX_SOURCE_BYTES + 1)
        except OSError:
            continue
        if len(raw) <= _MAX_SOURCE_BYTES:
            found[path] = {"sha256": hashlib.sha256(raw).hexdigest(), "text": raw.decode(errors="replace")}
    return found
