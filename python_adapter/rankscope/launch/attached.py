"""``rankscope attach``: look into a job that runs already, then leave it as it was."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import Any

from rankscope.dap.channel import Channel
from rankscope.dap.messages import DapError
from rankscope.errors import UserError
from rankscope.launch.report import Report
from rankscope.launch.terminal import TIMED_OUT, Plan, Terminal

_CONNECT_SECONDS = 5.0
_LEAVE_SECONDS = 10.0
_LEFT = 0


class Attached(Terminal):
    """A second DAP client of a job's hub: its breakpoints hold, instead of the first one's, until it leaves."""

    def __init__(self, plan: Plan, address: str, report: Report) -> None:
        super().__init__(plan, report)
        self._address = address
        self._leaves = asyncio.Event()
        self._exit_code = _LEFT

    async def run(self) -> int:
        """Print stops until the job ends (its exit code), Ctrl-C (0) or the time-out (124). Raises ``UserError``."""
        self._channel = await self._connect()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._leaves.set)
        serving = asyncio.ensure_future(self._channel.serve(self))
        try:
            await self._start_job()
            return await self._watch()
        finally:
            self._is_ending = True
            await self._channel.close()
            await serving

    async def _connect(self) -> Channel:
        kind, _, where = self._address.partition(":")
        try:
            opening = (
                asyncio.open_unix_connection(where) if kind == "unix" else asyncio.open_connection("127.0.0.1", where)
            )
            return Channel(*await asyncio.wait_for(opening, _CONNECT_SECONDS))
        except (OSError, asyncio.TimeoutError) as e:
            raise UserError("no-such-run", f"No hub answers at {self._address}: {e}.", "Has the job ended?") from e

    def _begins(self) -> tuple[str, dict[str, Any]]:
        return "attach", {"name": "attach", "sessions": "single", "workspaceFolder": self._plan.cwd}

    async def _watch(self) -> int:
        ends = [asyncio.ensure_future(event.wait()) for event in (self._terminated, self._leaves)]
        waits: set[asyncio.Future[Any]] = {*ends, self._channel.closed}
        await asyncio.wait(waits, timeout=self._plan.timeout, return_when=asyncio.FIRST_COMPLETED)
        is_over = self._terminated.is_set() or self._channel.closed.done()
        for end in ends:
            end.cancel()
        self._is_ending = True
        with contextlib.suppress(DapError, TimeoutError):
            await self._channel.request("disconnect", {"terminateDebuggee": False}, timeout=_LEAVE_SECONDS)
        if is_over or self._leaves.is_set():
            return self._exit_code
        return TIMED_OUT

    def on_event(self, name: str, body: dict[str, Any]) -> None:
        """One event of the hub."""
        if name == "exited":
            self._exit_code = int(body.get("exitCode", 0))
        super().on_event(name, body)
