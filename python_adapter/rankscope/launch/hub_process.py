"""The hub of a job started from a terminal: a process of its own session, so that Ctrl-C is the job's alone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rankscope.dap.channel import Channel
from rankscope.errors import UserError
from rankscope.launch.command import package_path

_START_SECONDS = 30.0
_END_SECONDS = 10.0
_CONNECT_SECONDS = 5.0


class HubProcess:
    """Owns the process and a private folder for its socket and log; :meth:`close` leaves neither behind."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self._process = process
        self._folder = folder

    @classmethod
    async def start(cls, environment: Mapping[str, str]) -> HubProcess:
        """Start it and wait until it listens. Raises :class:`UserError` ``hub-failed`` with its own words."""
        folder = Path(tempfile.mkdtemp(prefix="rankscope-run-"))
        with (folder / "hub.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "rankscope.hub", "--editor", f"unix:{folder / 'editor'}"),
                cwd=folder,  # -m looks there first: nothing of the person's may take the place of a library
                env=package_path(environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        hub = cls(process, folder)
        try:
            await asyncio.wait_for(hub._ready(), _START_SECONDS)
        except (UserError, asyncio.TimeoutError) as e:
            why = e.message if isinstance(e, UserError) else f"it was not ready within {_START_SECONDS:g} s"
            tail = hub.log_tail()
            await hub.close(grace=0.2)
            raise UserError("hub-failed", f"The hub did not start: {why}", tail) from e
        return hub

    async def _ready(self) -> None:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        try:
            said = json.loads(line)
        except ValueError:
            said = {"message": line.decode(errors="replace").strip() or "it ended at once."}
        if not said.get("ready"):
            raise UserError(said.get("code", "hub-failed"), said.get("message", "?"), said.get("hint", ""))

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    async def connect(self) -> Channel:
        """A DAP connection to it."""
        opening = asyncio.open_unix_connection(self._folder / "editor", limit=1 << 20)
        reader, writer = await asyncio.wait_for(opening, _CONNECT_SECONDS)
        return Channel(reader, writer)

    def log_tail(self, lines: int = 5) -> str:
        """The last words in its log."""
        with contextlib.suppress(OSError):
            return "\n".join((self._folder / "hub.log").read_text(errors="replace").splitlines()[-lines:])
        return ""

    async def close(self, grace: float = _END_SECONDS) -> None:
        """Let it end by itself, within ``grace`` seconds, then make it. Idempotent."""
        try:
            await asyncio.wait_for(self._process.communicate(), grace)
        except asyncio.TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)


def outer_environment() -> dict[str, str]:
    """This process's environment without the marks of a job it may itself belong to."""
    return {name: text for name, text in os.environ.items() if not name.startswith("RANKSCOPE_")}
