"""The driver in the client's terminal, as its launcher (:mod:`rankscope.launch.in_terminal`) tells of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rankscope.errors import UserError
from rankscope.hub import processes
from rankscope.launch import in_terminal

TERMINAL_CLOSED = 129
_START_SECONDS = 30.0
_MAX_LINE = 1 << 16


class TerminalDriver:
    """One launch. Owns the socket that its launcher connects to, and that one connection; :meth:`close` ends both.

    ``changes`` are made to the terminal's environment, ``first`` are folders to put first on its PATH.
    ``pid`` is the driver's once it has started. ``on_exit`` is called once with its exit code, and with what is to be
    said of it; never after :meth:`close`.
    """

    def __init__(
        self, socket_path: Path, cwd: str, changes: Mapping[str, str | None], first: Sequence[str] = ()
    ) -> None:
        self.pid: int | None = None
        self.on_exit: Callable[[int, str], None] = lambda _code, _text: None
        self._path = socket_path
        self._plan = {"cwd": cwd, "env": dict(changes), "first": list(first)}
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None
        self._serving: asyncio.Task[None] | None = None

    async def listen(self) -> None:
        """Open the socket; its folder is ours alone."""
        self._server = await asyncio.start_unix_server(self._accepted, path=self._path, limit=_MAX_LINE)

    def argv(self, argv: Sequence[str]) -> list[str]:
        """What the terminal is to run."""
        return [sys.executable, "-I", in_terminal.__file__, str(self._path), "--", *argv]

    async def started(self) -> None:
        """Wait until the driver runs. Raises :class:`UserError` when it cannot, or the terminal stays silent."""
        try:
            await asyncio.wait_for(asyncio.shield(self._started), _START_SECONDS)
        except (TimeoutError, asyncio.TimeoutError) as e:
            why = f"The terminal has not started the job within {_START_SECONDS:g} s."
            raise UserError("launch-failed", why, "Is it waiting for something?") from e

    def close(self) -> None:
        """Hear no more of this launch; its launcher, if it has not begun yet, gives up."""
        if self._server is not None:
            self._server.close()
        if self._serving is not None:
            self._serving.cancel()
        if not self._started.done():
            self._started.set_exception(UserError("launch-failed", "The job was ended before it had started."))
            self._started.exception()  # seen: nobody may be waiting

    # --- the connection ---------------------------------------------------------------------------

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._serving is not None:
                writer.write(json.dumps({"error": "this job has been started already"}).encode() + b"\n")
                return
            self._serving = asyncio.current_task()
            writer.write(json.dumps(self._plan).encode() + b"\n")
            await self._hear(reader)
        except asyncio.CancelledError:
            pass
        finally:
            writer.close()

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            while line := await reader.readline():
                message = json.loads(line)
                if "exit" in message:
                    self._ended(message)
                    return
                self.pid = int(message["pid"])
                if not self._started.done():
                    self._started.set_result(None)
        # The launcher was killed. The driver itself may live on for a while, and is then still the job's.
        if self.pid is not None:
            await processes.until_ended(self.pid)
        self._ended({"exit": TERMINAL_CLOSED}, "the terminal was closed")

    def _ended(self, message: Mapping[str, Any], text: str = "") -> None:
        if not self._started.done():
            code = "no-such-program" if message.get("error") else "launch-failed"
            self._started.set_exception(UserError(code, str(message.get("error") or f"{text.capitalize()}.")))
            self._started.exception()  # seen, as above
            return
        self.on_exit(int(message["exit"]), text)
