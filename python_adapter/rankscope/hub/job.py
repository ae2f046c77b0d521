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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankscope.dap.messages import DapError
from rankscope.errors import UserError
from rankscope.hub import open_files, processes
from rankscope.hub.fleet import Fleet
from rankscope.hub.terminal_driver import TerminalDriver
from rankscope.launch import keeper
from rankscope.launch.command import job_argv, job_environment, plain_environment
from rankscope.wire import messages as m
from rankscope.wire.link import PARENT_VARIABLE

if TYPE_CHECKING:
    from rankscope.dap.front import Front
    from rankscope.hub.settings import LaunchSettings

POLITE_SECONDS = 3.0
FORCED_SECONDS = 1.5
LINGER_SECONDS = 3.0
_TERMINAL_SECONDS = 30.0
_LAST_WORDS_SECONDS = 0.5
_CHOSEN_VARIABLE = "VIRTUAL_ENV"


class Job:
    """One launch. Owns the driver process when the hub started it itself, else what hears of it.

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
        self._terminal: TerminalDriver | None = None

    @property
    def is_running(self) -> bool:
        """Whether the driver has been started and has not ended."""
        return self.was_launched and self.exit_code is None

    # --- starting ---------------------------------------------------------------------------------

    async def launch(self, settings: LaunchSettings, front: Front) -> None:
        """Start the driver, in the front's terminal when it asks for one. Raises :class:`UserError`."""
        argv = job_argv(settings)
        base = settings.environment()
        environment = (
            plain_environment(self.id, base) if settings.no_debug else job_environment(self.id, self._file, base)
        )
        cwd = settings.cwd or str(Path.cwd())
        self.exit_code = None
        self._exited.clear()
        self._ending = None
        self._fleet.has_ended = False
        self.was_launched = True
        if settings.console != "internalConsole" and front.supports_run_in_terminal:
            await self._in_terminal(argv, cwd, self._changes(settings, environment), settings, front)
        else:
            self._spawn(argv, cwd, environment, front)

    @staticmethod
    def _changes(settings: LaunchSettings, environment: Mapping[str, str]) -> dict[str, str | None]:
        """What a terminal, which has an environment of its own, has to change in it."""
        removed = [name for name, text in settings.env.items() if text is None]
        added = {name: text for name, text in environment.items() if os.environ.get(name) != text}
        chosen = {name: text for name, text in environment.items() if name == _CHOSEN_VARIABLE and _chosen_programs()}
        return {**dict.fromkeys((*removed, PARENT_VARIABLE)), **chosen, **added}

    async def _in_terminal(
        self, argv: list[str], cwd: str, changes: dict[str, str | None], settings: LaunchSettings, front: Front
    ) -> None:
        """Let the client start the driver. One that does not tell the driver's end itself runs our launcher."""
        if self._terminal is not None:
            self._terminal.close()
            self._terminal = None
        kind = "external" if settings.console == "externalTerminal" else "integrated"
        ask: dict[str, Any] = {"kind": kind, "title": settings.name or argv[0], "cwd": cwd}
        driver = None
        if front.tells_driver_exit:
            ask |= {"args": argv, "env": changes}
        else:
            driver = self._terminal = TerminalDriver(self._file.parent / "driver", cwd, changes, _chosen_programs())
            driver.on_exit = self._terminal_ended
            await driver.listen()
            ask |= {"args": driver.argv(argv), "env": {}}
        try:
            await front.channel.request("runInTerminal", ask, timeout=_TERMINAL_SECONDS)
        except (DapError, TimeoutError, asyncio.TimeoutError) as e:
            raise UserError("launch-failed", f"The terminal could not start '{argv[0]}': {e}.") from e
        if driver is not None:
            await driver.started()

    def _terminal_ended(self, code: int, text: str) -> None:
        if text:
            self._fleet.notice("warning", text)
        self.driver_exited(code, is_its_own=not text)

    def _spawn(self, argv: list[str], cwd: str, environment: dict[str, str], front: Front) -> None:
        """Start the driver under a keeper, which is nobody's child of asyncio: the job may outlive this hub."""
        if shutil.which(argv[0], path=environment.get("PATH")) is None:
            raise UserError("no-such-program", f"'{argv[0]}' cannot be started.", "Is it on PATH?")
        process = subprocess.Popen(
            [sys.executable, "-I", keeper.__file__, str(open_files.inherited), *argv],
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

    def close(self) -> None:
        """Hear no more of a driver in a terminal."""
        if self._terminal is not None:
            self._terminal.close()

    # --- ending -----------------------------------------------------------------------------------

    def driver_exited(self, code: int, *, is_its_own: bool = True) -> None:
        """The driver has ended, by itself or not: clean up after it, then say so once."""
        if self.exit_code is None:
            self.exit_code = code
            self._exited.set()
            self._fleet.driver_ended(code if is_its_own else None)
            if self._ending is None:
                self._ending = asyncio.ensure_future(self._clean_up(code))

    async def end(self) -> None:
        """Ask the driver to end, once; kill what is left within 5 s. Idempotent."""
        if self._ending is None and self.was_launched:
            self._ending = asyncio.ensure_future(self._end())
        if self._ending is not None:
            await asyncio.shield(self._ending)

    async def _end(self) -> None:
        if self._terminal is not None and self._terminal.pid is None:
            self._terminal.close()
        await asyncio.wait([asyncio.ensure_future(self._fleet.release_all())], timeout=1.0)
        roots = processes.roots_of(self._processes())
        for pid in roots:
            processes.send(pid, signal.SIGTERM)
        await _until(lambda: not self._processes() and not self._fleet.select(None), POLITE_SECONDS - 1.0)
        await self._force()
        if self._output is not None:
            await asyncio.wait([self._output], timeout=_LAST_WORDS_SECONDS)
        if self._terminal is not None and self._terminal.pid is not None:
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(self._exited.wait(), _LAST_WORDS_SECONDS)
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
        await self._fleet.crashes.settle()
        self._on_exit(code)

    def _processes(self) -> set[int]:
        return processes.of_job(self.id, self._file)

    async def _force(self, *, only_members: bool = False) -> None:
        """End whatever is left of this job, and of this job only."""
        members = self._fleet.select(None)
        for member in members:
            member.send(m.End(grace=FORCED_SECONDS))

        def left() -> set[int]:
            local = {member.hello.pid for member in members if member.is_local and not member.has_ended()}
            return local if only_members else local | self._processes()

        for pid in left():
            processes.send(pid, signal.SIGTERM)
        await _until(lambda: not left(), FORCED_SECONDS)
        for pid in left():
            processes.send(pid, signal.SIGKILL)
        await _until(lambda: not left(), 0.5)


def _chosen_programs() -> list[str]:
    """The folder of our Python, where whoever started us put it first on PATH: a chosen environment's programs."""
    folder = str(Path(sys.executable).parent)
    return [folder] if os.environ.get("PATH", "").split(os.pathsep)[0] == folder else []


async def _until(is_true: Callable[[], Any], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(0.05)
    return True
