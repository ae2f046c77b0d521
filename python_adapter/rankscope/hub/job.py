"""The job's processes: how the driver is started, and how everything is ended."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankscope.dap.messages import DapError
from rankscope.errors import UserError
from rankscope.hub.fleet import Fleet
from rankscope.launch import keeper
from rankscope.launch.command import job_argv, job_environment
from rankscope.wire import messages as m
from rankscope.wire.link import JOB_VARIABLE

if TYPE_CHECKING:
    from rankscope.dap.front import Front
    from rankscope.hub.settings import LaunchSettings

POLITE_SECONDS = 3.0
FORCED_SECONDS = 1.5
LINGER_SECONDS = 3.0
_TERMINAL_SECONDS = 30.0
_LAST_WORDS_SECONDS = 0.5


class Job:
    """One launch. Owns the driver process when the hub started it itself.

    ``exit_code`` is ``None`` until the driver has ended. ``on_exit`` is called once then.
    """

    def __init__(self, job_id: str, job_file: Path, fleet: Fleet, on_exit: Callable[[int], None]) -> None:
        self.id = job_id
        self.exit_code: int | None = None
        self.was_launched = False
        self._file = job_file
        self._fleet = fleet
        self._on_exit = on_exit
        self._exited = asyncio.Event()
        self._ending: asyncio.Task[None] | None = None
        self._output: asyncio.Task[None] | None = None

    # --- starting ---------------------------------------------------------------------------------

    async def launch(self, settings: LaunchSettings, front: Front) -> None:
        """Start the driver, in the front's terminal when it asks for one. Raises :class:`UserError`."""
        argv = job_argv(settings)
        environment = job_environment(self.id, self._file, settings.environment())
        cwd = settings.cwd or str(Path.cwd())
        self.exit_code = None
        self._exited.clear()
        self._ending = None
        self._fleet.has_ended = False
        self.was_launched = True
        if settings.console != "internalConsole" and front.supports_run_in_terminal:
            added = {key: value for key, value in environment.items() if os.environ.get(key) != value}
            kind = "external" if settings.console == "externalTerminal" else "integrated"
            try:
                await front.channel.request(
                    "runInTerminal",
                    {"kind": kind, "title": settings.name or argv[0], "cwd": cwd, "args": argv, "env": added},
                    timeout=_TERMINAL_SECONDS,
                )
            except (DapError, TimeoutError, asyncio.TimeoutError) as e:
                raise UserError("launch-failed", f"The terminal could not start '{argv[0]}': {e}.") from e
            return
        self._spawn(argv, cwd, environment, front)

    def _spawn(self, argv: list[str], cwd: str, environment: dict[str, str], front: Front) -> None:
        """Start the driver under a keeper, which is nobody's child of asyncio: the job may outlive this hub."""
        if shutil.which(argv[0], path=environment.get("PATH")) is None:
            raise UserError("no-such-program", f"'{argv[0]}' cannot be started.", "Is it on PATH?")
        process = subprocess.Popen(
            [sys.executable, "-I", keeper.__file__, *argv],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._output = asyncio.ensure_future(self._relay(process, front))

    async def _relay(self, process: subprocess.Popen[bytes], front: Front) -> None:
        """Pass the driver's output to the front until it ends."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), process.stdout)
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        while data := await reader.read(1 << 16):
            front.channel.send_event("output", {"category": "stdout", "output": decoder.decode(data)})
        transport.close()
        code = await asyncio.to_thread(process.wait)  # its output has ended, and it with it
        if self._output is asyncio.current_task():  # else this was the driver before a restart
            self.driver_exited(code if code >= 0 else 128 - code)

    def leave_running(self) -> None:
        """The editor has left and wants the job to go on: from now on it is nobody's to end."""
        self.was_launched = False

    # --- ending -----------------------------------------------------------------------------------

    def driver_exited(self, code: int) -> None:
        """The driver has ended, by itself or not: clean up after it, then say so once."""
        if self.exit_code is None:
            self.exit_code = code
            self._exited.set()
            if self._ending is None:
                self._ending = asyncio.ensure_future(self._clean_up(code))

    async def end(self) -> None:
        """Ask the driver to end, once; kill what is left within 5 s. Idempotent."""
        if self._ending is None and self.was_launched:
            self._ending = asyncio.ensure_future(self._end())
        if self._ending is not None:
            await asyncio.shield(self._ending)

    async def _end(self) -> None:
        await asyncio.wait([asyncio.ensure_future(self._fleet.release_all())], timeout=1.0)
        roots = _roots(processes(self.id))
        for pid in roots:
            _signal(pid, signal.SIGTERM)
        await _until(lambda: not processes(self.id) and not self._fleet.select(None), POLITE_SECONDS - 1.0)
        await self._force()
        if self._output is not None:
            await asyncio.wait([self._output], timeout=_LAST_WORDS_SECONDS)
        if self.exit_code is None:
            self.exit_code = 128 + signal.SIGTERM
            self._exited.set()
        self._on_exit(self.exit_code)

    async def _clean_up(self, code: int) -> None:
        """After the driver's end: let the members leave by themselves, release the paused, end the rest."""
        paused = [member.label for member in self._fleet.select(None) if member.state == "paused"]
        if paused:
            self._fleet.notice("warning", f"the driver ended while paused: {', '.join(paused)}; released")
        await asyncio.wait([asyncio.ensure_future(self._fleet.release_all())], timeout=2.0)
        await _until(lambda: not self._fleet.select(None), LINGER_SECONDS)
        if code != 0 or self._fleet.select(None):
            await self._force(only_members=code == 0)
        self._on_exit(code)

    async def _force(self, *, only_members: bool = False) -> None:
        """End whatever is left of this job, and of this job only."""
        members = self._fleet.select(None)
        for member in members:
            member.send(m.End(grace=FORCED_SECONDS))

        def left() -> set[int]:
            local = {member.hello.pid for member in members if member.is_local and not member.has_ended()}
            return local if only_members else local | processes(self.id)

        for pid in left():
            _signal(pid, signal.SIGTERM)
        await _until(lambda: not left(), FORCED_SECONDS)
        for pid in left():
            _signal(pid, signal.SIGKILL)
        await _until(lambda: not left(), 0.5)


def processes(job_id: str) -> set[int]:
    """The pids on this host that carry the job in their environment, launchers and shells included."""
    mark = f"{JOB_VARIABLE}={job_id}".encode()
    found = set()
    for entry in Path("/proc").iterdir() if sys.platform == "linux" else ():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.add(int(entry.name))
    return found


def _roots(pids: set[int]) -> set[int]:
    """Those whose parent is none of the others: they pass a polite end on as they see fit."""
    roots = set()
    for pid in pids:
        with contextlib.suppress(OSError, IndexError, ValueError):
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            if parent not in pids:
                roots.add(pid)
    return roots


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


async def _until(is_true: Callable[[], Any], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(0.05)
    return True
