"""Where this process stands: its innermost frame of the person's own code, and the blocking call that it is in.

Asked of every rank about once a second, so it looks at frames only, never at values.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import Any

from rankscope.agent import stacks

# Whose functions wait for others. For torch these two files alone: the rest of torch.distributed also calls the
# person's own code (FSDP's forward, say), and a Work.wait() is C and has no frame.
_COLLECTIVES = ("torch.distributed.distributed_c10d", "torch.distributed._functional_collectives")
_RAY = ("ray._private.worker", "ray.util.client.api", "ray.util.client.worker")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SUSPENDED = "do_wait_suspend"
_RAY_CALLS = ("get", "wait")
_WAITS = {
    "threading": {"wait", "wait_for", "join", "acquire"},
    "queue": {"get", "put", "join"},
    "subprocess": {"run", "call", "check_call", "check_output", "communicate", "wait"},
    "selectors": {"select"},
    "asyncio.runners": {"run"},
    "concurrent.futures._base": {"result", "exception", "wait", "as_completed"},
    "multiprocessing.connection": {"recv", "recv_bytes", "poll", "wait"},
    "multiprocessing.context": {"join"},
    "multiprocessing.pool": {"join", "get", "wait", "map", "starmap", "apply"},
    "multiprocessing.process": {"join"},
    "multiprocessing.queues": {"get", "put", "join"},
    "multiprocessing.synchronize": {"acquire", "wait", "wait_for"},
}


def top(_arguments: dict[str, Any]) -> dict[str, Any]:
    """``frame``: name, path, line and call of the main thread if that runs own code, else ``None``; ``memory``.

    The frame says the name of its ``thread``, and whether the debugger has stopped that (``isSuspended``).
    """
    running = sys._current_frames()
    threads = {thread.ident: thread for thread in threading.enumerate()}
    main = threading.main_thread().ident
    folders = tuple(folder.rstrip(os.sep) + os.sep for folder in stacks.roots())
    best: tuple[bool, dict[str, Any]] | None = None
    for ident in sorted(running, key=lambda ident: ident != main):
        if stacks.is_ours(threads.get(ident)):
            continue
        found = _own(running[ident], folders)
        if found is not None and (best is None or found[0] > best[0]):
            best = found
            best[1]["thread"] = getattr(threads.get(ident), "name", "")
        if best is not None and best[0]:
            break
    return {"frame": None if best is None else best[1], "memory": _memory()}


def _memory() -> int:
    """Bytes of memory that this process holds; 0 where that is not known."""
    with suppress(OSError, ValueError, IndexError), open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * _PAGE
    return 0


def _own(innermost: FrameType, folders: tuple[str, ...]) -> tuple[bool, dict[str, Any]] | None:
    """The innermost own frame of one thread; first whether its file lies in a folder of the job."""
    call = ""
    is_suspended = False
    elsewhere: dict[str, Any] | None = None
    frame: FrameType | None = innermost
    while frame is not None:
        path = frame.f_code.co_filename
        if stacks.is_own_file(path):
            described = {"name": frame.f_code.co_name, "path": path, "line": frame.f_lineno or 0, "call": call}
            described["isSuspended"] = is_suspended
            if path.startswith(folders):
                return True, described
            elsewhere = elsewhere or described
        is_suspended = is_suspended or (frame.f_code.co_name == _SUSPENDED and path.endswith("pydevd.py"))
        call = call_of(frame) or call  # the outermost wins: all_reduce rather than the wait inside it
        frame = frame.f_back
    return None if elsewhere is None else (False, elsewhere)


def call_of(frame: FrameType) -> str:
    """The name of a blocking call, as people write it; empty for any other frame."""
    module, name = str(frame.f_globals.get("__name__", "")), frame.f_code.co_name
    if module in _COLLECTIVES:
        return "" if name.startswith(("_", "<")) else name
    if module in _RAY:
        return f"ray.{name}" if name in _RAY_CALLS else ""
    if name in _WAITS.get(module, ()):
        qualified = getattr(frame.f_code, "co_qualname", name)  # Python 3.11 and later
        return f"{module.partition('._')[0]}.{qualified}".replace("asyncio.runners", "asyncio")
    return ""
