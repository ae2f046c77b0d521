"""The job as a child of this terminal: its stdin, tty, signals and exit code are what they are without RankScope."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence

from rankscope.errors import UserError

NOT_FOUND = 127
NOT_EXECUTABLE = 126
# What a terminal itself sends to its foreground process group.
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
_FORWARDED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class Child:
    """The job's driver. Owns the process; signals sent to us reach it exactly once.

    With a controlling terminal it stays in our process group, so that Ctrl-C, Ctrl-Z and job control work as
    ever: what the terminal sends reaches it directly, what was sent to us alone is passed on. Without one it gets
    a group of its own and everything is passed on.
    """

    def __init__(self) -> None:
        self.exit_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._process: asyncio.subprocess.Process | None = None
        self._waiting: asyncio.Task[None] | None = None
        self._terminal = _controlling_terminal()

    @property
    def is_started(self) -> bool:
        """Whether there is, or was, a process."""
        return self._process is not None

    async def start(self, argv: Sequence[str], cwd: str, environment: Mapping[str, str]) -> int:
        """Start the driver and return its pid. Raises :class:`UserError`; ``exit_code`` is a shell's then."""
        try:
            self._process = await asyncio.create_subprocess_exec(
                *argv, cwd=cwd, env=environment, close_fds=False, start_new_session=self._terminal is None
            )
        except OSError as e:
            found = not isinstance(e, FileNotFoundError)
            self._exited(NOT_EXECUTABLE if found else NOT_FOUND)
            hint = "Is it executable?" if found else "Is it on PATH?"
            raise UserError("no-such-program", f"'{argv[0]}' cannot be started: {e.strerror or e}.", hint) from e
        self._waiting = asyncio.ensure_future(self._wait(self._process))
        return self._process.pid

    def take_signals(self) -> None:
        """Pass signals on from now on. One that is ignored (``nohup``) stays ignored, here and in the job."""
        loop = asyncio.get_running_loop()
        for number in _FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._signalled, number)

    def send(self, number: signal.Signals) -> None:
        """Signal the driver, if it lives."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    def close(self) -> None:
        """Give the terminal back."""
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None

    def _signalled(self, number: signal.Signals) -> None:
        if self._process is None:
            self._exited(128 + number)
        elif not self._came_from_terminal(number):
            self.send(number)

    def _came_from_terminal(self, number: signal.Signals) -> bool:
        if self._terminal is None or number not in _FROM_TERMINAL:
            return False
        try:
            return number == signal.SIGHUP or os.tcgetpgrp(self._terminal) == os.getpgrp()
        except OSError:
            return False

    async def _wait(self, process: asyncio.subprocess.Process) -> None:
        code = await process.wait()
        self._exited(code if code >= 0 else 128 - code)

    def _exited(self, code: int) -> None:
        if not self.exit_code.done():
            self.exit_code.set_result(code)


def _controlling_terminal() -> int | None:
    try:
        return os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
