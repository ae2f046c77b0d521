"""Stacks of a process whose interpreter cannot answer, or down into C, by py-spy: from outside, on this host only.

py-spy holds the process for the moment that it reads (about 0.1 s with native frames). It needs the right to trace
it: same user, and where the kernel restricts tracing (Yama, a container without SYS_PTRACE) more than that.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rankscope.dap.messages import DapError
from rankscope.hub.stacks import Frame, Thread, bounded, common_name, kind_of

SECONDS = 8.0
_MAIN = "MainThread"
_AT_ONCE = max(2, os.cpu_count() or 2)
_OUR_THREADS = ("pydevd.", "rankscope")
_OURS = re.compile(r"/debugpy/_vendored/|/rankscope/agent/")
_REFUSED = ("permission denied", "operation not permitted", "ptrace")


def executable() -> str:
    """py-spy beside this Python or on PATH. Raises :class:`DapError` when there is none."""
    beside = Path(sys.executable).parent / "py-spy"
    found = str(beside) if beside.exists() else shutil.which("py-spy")
    if not found:
        raise DapError("py-spy is not installed where the hub runs: pip install py-spy", "no-py-spy")
    return found


class Spy:
    """Runs py-spy for one request, a few at a time. ``in_client`` maps a member's path to the client's."""

    def __init__(self, in_client: Callable[[str], str]) -> None:
        self._in_client = in_client
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def threads(self, pid: int) -> list[tuple[Thread, str]]:
        """Its Python threads and their states, native frames innermost. Raises :class:`DapError`, in time."""
        command = executable()
        async with self._room:
            process = await asyncio.create_subprocess_exec(
                *(command, "dump", "--native", "--json", "--pid", str(pid)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            try:
                out, err = await asyncio.wait_for(process.communicate(), SECONDS)
            except (TimeoutError, asyncio.TimeoutError) as e:
                raise DapError(f"py-spy did not answer within {SECONDS:g} s", "py-spy-failed") from e
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        if process.returncode:
            raise DapError(f"py-spy: {_why(err.decode(errors='replace'))}", "py-spy-failed")
        try:
            return [self._thread(thread) for thread in json.loads(out) if not _is_ours(thread)]
        except (ValueError, KeyError, TypeError) as e:
            raise DapError(f"py-spy's answer cannot be read: {e!r}", "py-spy-failed") from e

    def _thread(self, thread: dict[str, Any]) -> tuple[Thread, str]:
        name = str(thread["thread_name"] or "Thread")
        frames = [self._frame(frame) for frame in reversed(thread["frames"])]
        last = next((at for at in range(len(frames) - 1, -1, -1) if frames[at][3] != "native"), -1)
        # As the agents' own answers, so that both meet in one tree: no C but that below the last Python frame.
        python = [frame for frame in frames[: last + 1] if frame[3] != "native" and not _OURS.search(frame[1])]
        state = "running" if thread.get("active") else "blocked"
        kept = bounded([*python, *frames[last + 1 :]])
        return Thread("" if name == _MAIN else common_name(name), "", kept), state

    def _frame(self, frame: dict[str, Any]) -> Frame:
        path, module = str(frame["filename"]), frame.get("module")
        if module:
            return str(frame["name"]), str(module), int(frame["line"] or 0), "native"
        return str(frame["name"]), self._in_client(path), int(frame["line"] or 0), kind_of(path)


def _why(text: str) -> str:
    """Its error in one line."""
    if any(word in text.lower() for word in _REFUSED):
        return (
            "this host does not let it trace the process (see kernel.yama.ptrace_scope, or the container's SYS_PTRACE)"
        )
    return (text.strip().splitlines() or ["no reason given"])[0].removeprefix("Error: ")


def _is_ours(thread: dict[str, Any]) -> bool:
    return str(thread.get("thread_name") or "").startswith(_OUR_THREADS)
