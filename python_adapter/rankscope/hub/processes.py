"""Processes of this host: which belong to a job, which have ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from rankscope.wire.link import JOB_FILE_VARIABLE, JOB_VARIABLE

_LOOK_SECONDS = 0.2


def of_job(job_id: str, job_file: Path) -> set[int]:
    """The pids that carry the job or its file in their environment, launchers and shells included.

    Either will do: a process that sets its title, as Ray's node agents do, writes over a part of its environment.
    """
    marks = {f"{JOB_VARIABLE}={job_id}".encode(), os.fsencode(f"{JOB_FILE_VARIABLE}={job_file}")}
    found = set()
    for entry in Path("/proc").iterdir() if sys.platform == "linux" else ():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if not marks.isdisjoint((entry / "environ").read_bytes().split(b"\0")):
                found.add(int(entry.name))
    return found


def roots_of(pids: set[int]) -> set[int]:
    """Those whose parent is none of the others: they pass a polite end on as they see fit."""
    roots = set()
    for pid in pids:
        with contextlib.suppress(OSError, IndexError, ValueError):
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            if parent not in pids:
                roots.add(pid)
    return roots


def send(pid: int, number: signal.Signals) -> None:
    """Signal a process, if it is there and ours."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def has_ended(pid: int) -> bool:
    """Whether the process is surely gone; one that merely waits for its parent to notice is."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return _is_zombie(pid)


async def until_ended(pid: int) -> None:
    """Wait for a process that is not ours to wait for; no bound but its own life."""
    while not has_ended(pid):  # noqa: ASYNC110 - nobody tells of it
        await asyncio.sleep(_LOOK_SECONDS)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except (OSError, IndexError):
        return False


def signal_name(number: int) -> str:
    """``SIGKILL``, or ``signal 99`` where it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
