"""What the agent's thread answers by itself: the stacks of this process, and where a client's file is here."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
import threading
from types import FrameType
from typing import Any

from rankscope.agent import identity

_MAX_THREADS = 256
_MAX_FRAMES = 200
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
# Python's library, and the console scripts of what is installed, such as torchrun.
_STANDARD = tuple(
    os.path.realpath(folder) + os.sep
    for folder in {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "scripts")}
    if folder
)
_RAY_COPY = f"{os.sep}working_dir_files{os.sep}"


def stacks(_arguments: dict[str, Any]) -> dict[str, Any]:
    """Every thread's frames, innermost first; ``left_out`` counts threads beyond the bound."""
    threads = {thread.ident: thread for thread in threading.enumerate()}
    main = threading.main_thread().ident
    # Python's own and only list of all frames; private by name, documented all the same.
    running = [(ident, frame) for ident, frame in sys._current_frames().items() if not is_ours(threads.get(ident))]
    running.sort(key=lambda item: item[0] != main)
    answer = [
        {
            "thread": threads[ident].name if ident in threads else f"Thread {ident}",
            "ident": ident,
            "is_main": ident == main,
            "frames": _frames(frame),
        }
        for ident, frame in running[:_MAX_THREADS]
    ]
    return {"threads": answer, "left_out": max(0, len(running) - _MAX_THREADS)}


def paths(arguments: dict[str, Any]) -> dict[str, Any]:
    """For each client path, the files here that may be it: Ray's copy, itself, then the same place under a root."""
    found = {}
    for wanted in arguments.get("paths", ()):
        path, relative = str(wanted.get("path", "")), str(wanted.get("rel", ""))
        found[path] = list(dict.fromkeys(_candidates(path, relative)))
    return {"found": found}


def _candidates(path: str, relative: str) -> list[str]:
    here: list[str] = []
    if relative:
        here += [os.path.join(root, relative) for root in roots() if is_ray_copy(root)]
    here.append(path)
    if relative:
        here += [os.path.join(root, relative) for root in roots() if not is_ray_copy(root)]
    return [os.path.realpath(candidate) for candidate in here if os.path.isfile(candidate)]


def roots() -> list[str]:
    """Folders that user code of this process may lie in: Ray's copy, working folder, script folder."""
    main_file = getattr(sys.modules.get("__main__"), "__file__", None)
    candidates = [folder for folder in sys.path if is_ray_copy(folder)]
    try:
        candidates.append(os.getcwd())
    except OSError:  # the working folder was removed
        pass
    candidates += sys.path[:1]
    main_file = main_file or identity.script(getattr(sys, "orig_argv", sys.argv))
    if main_file:
        candidates.append(os.path.dirname(os.path.abspath(main_file)))
    return list(dict.fromkeys(folder for folder in candidates if folder and os.path.isdir(folder)))


def is_ray_copy(folder: str) -> bool:
    """Whether a folder is a copy of the driver's working_dir that Ray made."""
    return _RAY_COPY in folder + os.sep


@functools.lru_cache(maxsize=4096)
def is_own_file(path: str) -> bool:
    """Whether a file is the person's own: no installed package, nothing of Python itself or of RankScope."""
    if path.startswith(("<", _OURS)) or path.endswith(".pyx") or any(folder in path for folder in _INSTALLED):
        return False
    real = os.path.realpath(path)
    return not real.startswith(_STANDARD) and not any(folder in real for folder in _INSTALLED)


def is_our_file(path: str) -> bool:
    """Whether a file is one of RankScope itself."""
    return path.startswith(_OURS)


def is_ours(thread: threading.Thread | None) -> bool:
    """Whether a thread is one of RankScope's or of the debugger's."""
    return thread is not None and bool(getattr(thread, "is_pydev_daemon_thread", False))


def _frames(frame: FrameType | None) -> list[dict[str, Any]]:
    frames: list[dict[str, Any]] = []
    while frame is not None and len(frames) < _MAX_FRAMES:
        code = frame.f_code
        frames.append({"name": code.co_name, "path": code.co_filename, "line": frame.f_lineno or 0})
        frame = frame.f_back
    return frames
