"""The hub's fleet and agent port in this process, with one breakpoint, for what needs no front."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from rankscope.hub.agents import AgentPort
from rankscope.hub.breakpoints import Wanted
from rankscope.hub.fleet import Fleet
from rankscope.hub.member import Member
from rankscope.hub.settings import LaunchSettings
from rankscope.launch.command import job_environment
from rankscope.wire.link import Endpoint

WAIT_SECONDS = 30.0


class _OneBreakpoint:
    """Stands in for the wanted table: every rank and driver stops at one place."""

    def __init__(self, path: str, line: int) -> None:
        self._path, self._line = path, line
        self.listeners: list[Any] = []
        self.settings = LaunchSettings()

    def wants(self, member: Member) -> bool:
        return bool(self._line)

    def may_arm_ranks(self) -> bool:
        return bool(self._line)

    def files_for(self, member: Member) -> list[str]:
        return [self._path]

    def all(self) -> list[Any]:
        return []

    def entries_of(self, member: Member, ids: Any) -> list[Any]:
        return []

    def attach_arguments(self, member: Member) -> dict[str, Any]:
        return {"justMyCode": True}

    async def configure(self, member: Member) -> None:
        await member.debug("setBreakpoints", {"source": {"path": self._path}, "breakpoints": [{"line": self._line}]})


class SmallHub:
    """Owns the port, the fleet and the processes it starts. ``heard`` are notices, ``stops`` who stopped, in order."""

    def __init__(self, folder: Path, program: Path | None = None, line: int = 0, **settings: Any) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.endpoint = Endpoint(
            job=secrets.token_hex(6),
            host="127.0.0.1",
            port=self.socket.getsockname()[1],
            secret=secrets.token_hex(32),
            hub_pid=os.getpid(),
            **settings,
        )
        self.folder = folder
        self.heard: list[str] = []
        self.stops: list[Member] = []
        self.fleet = Fleet(self.endpoint, cast("Wanted", _OneBreakpoint(str(program), line)))
        self.fleet.listeners.append(self)
        self.port = AgentPort(self.fleet, self.endpoint)
        self._changed = asyncio.Event()
        self._processes: list[asyncio.subprocess.Process] = []
        self._watch: asyncio.Future[Any]

    async def __aenter__(self) -> SmallHub:  # noqa: PYI034 - Self came with 3.11
        await self.port.open(self.socket)
        self._watch = asyncio.ensure_future(self.fleet.watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.cancel()
        self.fleet.close()
        await self.port.close()
        for process in self._processes:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def start(self, *arguments: str, port: int | None = None) -> asyncio.subprocess.Process:
        """Start a Python program as part of the job, its link going through ``port`` when given."""
        endpoint = Endpoint(**{**self.endpoint.__dict__, "port": port or self.endpoint.port})
        file = self.folder / f"job-{len(self._processes)}.json"
        endpoint.save(file)
        environment = job_environment(self.endpoint.job, file, os.environ)
        process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, env=environment, stdout=asyncio.subprocess.PIPE
        )
        self._processes.append(process)
        return process

    async def until(self, is_true: Callable[[], Any], what: str) -> Any:
        """Wait for something the fleet does. Fails, saying ``what``, after a bound."""

        async def wait() -> Any:
            while not (found := is_true()):
                self._changed.clear()
                await self._changed.wait()
            return found

        try:
            return await asyncio.wait_for(wait(), WAIT_SECONDS)
        except asyncio.TimeoutError:
            raise AssertionError(f"not within {WAIT_SECONDS:g} s: {what}; heard {self.heard}") from None

    # --- a fleet listener -------------------------------------------------------------------------

    def member_joined(self, member: Member) -> None:
        self._changed.set()

    def member_changed(self, member: Member) -> None:
        self._changed.set()

    def member_left(self, member: Member) -> None:
        self._changed.set()

    def member_event(self, member: Member, event: str, body: dict[str, Any]) -> None:
        if event == "stopped":
            self.stops.append(member)
        self._changed.set()

    def notice(self, level: str, text: str, member: Member | None) -> None:
        self.heard.append(text)
        self._changed.set()
