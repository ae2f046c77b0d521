"""A job under a real hub, with this process as its DAP client: for what ``rankscope run`` does not hold still for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rankscope.dap.channel import Channel
from rankscope.dap.messages import DapError
from rankscope.launch.hub_process import HubProcess

WAIT_SECONDS = 60.0

Body = dict[str, Any]


class HubSession:
    """Owns the hub process and the connection; :meth:`close` ends job, connection and hub.

    ``events`` are all events as (name, body, time of arrival).
    """

    def __init__(self, hub: HubProcess, channel: Channel) -> None:
        self.hub = hub
        self.channel = channel
        self.events: list[tuple[str, Body, float]] = []
        self._changed = asyncio.Event()
        self._serving = asyncio.ensure_future(channel.serve(self))

    @classmethod
    async def launch(
        cls,
        command: Sequence[str],
        environment: Mapping[str, str],
        breakpoints: Mapping[str, Sequence[Body]] | None = None,
        **settings: Any,
    ) -> HubSession:
        """Start a job with ``{file: [breakpoint, ...]}`` set before it runs; one session presents all ranks."""
        hub = await HubProcess.start(environment)
        session = cls(hub, await hub.connect())
        try:
            await session._launch(command, breakpoints or {}, settings)
        except BaseException:
            await session.close()
            raise
        return session

    async def _launch(
        self, command: Sequence[str], breakpoints: Mapping[str, Sequence[Body]], settings: Mapping[str, Any]
    ) -> None:
        await self.request("initialize", clientID="test", pathFormat="path", linesStartAt1=True)
        arguments = {"command": list(command), "console": "internalConsole", "sessions": "single", **settings}
        launching = asyncio.ensure_future(self.request("launch", **arguments))
        await self.until(lambda: launching.done() or bool(self.of("initialized")))
        for path, points in breakpoints.items():
            await self.set_breakpoints(path, points)
        await self.request("configurationDone")
        await launching

    def on_event(self, name: str, body: Body) -> None:
        """Called by the channel."""
        self.events.append((name, body, time.time()))
        self._changed.set()

    def of(self, name: str) -> list[Body]:
        """The bodies of all events of a name so far."""
        return [body for event, body, _ in self.events if event == name]

    @property
    def output(self) -> str:
        """What the job printed so far."""
        return "".join(body.get("output", "") for body in self.of("output") if body.get("category") == "stdout")

    async def request(self, name: str, /, **arguments: Any) -> Body:
        """The body of the answer. Raises :class:`DapError`."""
        return await self.channel.request(name, arguments, timeout=30.0)

    async def set_breakpoints(self, path: str | Path, points: Sequence[Body]) -> list[Body]:
        """Replace a file's breakpoints."""
        body = await self.request("setBreakpoints", source={"path": str(path)}, breakpoints=list(points))
        answers: list[Body] = body["breakpoints"]
        return answers

    async def members(self) -> list[Body]:
        """Every member the hub knows, those that ended included."""
        found: list[Body] = (await self.request("rankscope/ranks"))["members"]
        return found

    async def until(self, is_true: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
        """Wait for what events bring about. Raises ``TimeoutError`` with the last of them."""
        deadline = time.monotonic() + seconds
        while not is_true():
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), max(0.01, deadline - time.monotonic()))
            except asyncio.TimeoutError as e:
                raise TimeoutError(f"not within {seconds:g} s; last events: {self.events[-10:]}") from e
            if self.channel.closed.done() and not is_true():
                raise ConnectionError(f"the hub has gone: {self.channel.closed.result()} {self.hub.log_tail(20)}")

    async def until_members(self, is_true: Callable[[list[Body]], bool], seconds: float = WAIT_SECONDS) -> list[Body]:
        """Wait until the list of members is as wished, and return it."""
        deadline = time.monotonic() + seconds
        while not is_true(members := await self.members()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {seconds:g} s; members: {members}")
            await asyncio.sleep(0.02)
        return members

    async def until_stops(self, count: int) -> list[Body]:
        """Wait for so many stops in all, and return their events."""
        await self.until(lambda: len(self.of("stopped")) >= count)
        return self.of("stopped")

    async def top_frame(self, thread: int) -> Body:
        """The innermost frame of a stopped thread."""
        body = await self.request("stackTrace", threadId=thread, startFrame=0, levels=1)
        frame: Body = body["stackFrames"][0]
        return frame

    async def close(self, *, ends_job: bool = True) -> None:
        """Leave; the job is ended, or with ``ends_job=False`` left to run on."""
        try:
            if not self.channel.closed.done():
                await self.request("disconnect", terminateDebuggee=ends_job)
        except (DapError, TimeoutError):
            pass  # the hub may end before its answer is out
        finally:
            await self.channel.close()
            await self._serving
            await self.hub.close()
