"""``rankscope run``: one job in this terminal, its stops printed, then let go on."""

from __future__ import annotations

import asyncio
import contextlib
import linecache
import re
import signal
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankscope.dap.channel import Channel
from rankscope.dap.messages import DapError
from rankscope.errors import UserError
from rankscope.launch.child import Child
from rankscope.launch.hub_process import HubProcess, outer_environment
from rankscope.launch.locations import Location
from rankscope.launch.report import Frame, Report, Stop, Value

TIMED_OUT = 124
OWN_FAILURE = 125
_SETUP_SECONDS = 30.0
_ASK_SECONDS = 10.0
_END_SECONDS = 12.0
_KILL_SECONDS = 5.0
_MAX_FRAMES = 50
_LABELLED = re.compile(r"\[([^\]]*)\] (.*)")


@dataclass(frozen=True)
class Plan:
    """What the command line asked for."""

    command: list[str]
    cwd: str
    points: list[Location] = field(default_factory=list)
    prints: list[str] = field(default_factory=list)
    ranks: str = ""
    timeout: float | None = None


class Terminal:
    """The hub's DAP client for one run. Owns the child, the hub process, the channel and a task per stop."""

    def __init__(self, plan: Plan, report: Report) -> None:
        self._plan = plan
        self._report = report
        self._child = Child()
        self._initialized = asyncio.Event()
        self._terminated = asyncio.Event()
        self._asked: dict[int, Location] = {}  # by the hub's breakpoint id
        self._answers: dict[int, dict[str, Any]] = {}
        self._bound: set[int] = set()
        self._labels: dict[int, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_rank = False
        self._is_ending = False
        self._channel: Channel

    async def run(self) -> int:
        """Run the job to its end; returns its exit code. Raises :class:`UserError` when it could not be started."""
        started = time.monotonic()
        self._child.take_signals()
        try:
            code = await self._run()
        finally:
            self._child.close()
        self._report.ended(code, time.monotonic() - started)
        return code

    async def _run(self) -> int:
        hub = await HubProcess.start(outer_environment())
        try:
            self._channel = await hub.connect()
            serving = asyncio.ensure_future(self._channel.serve(self))
            try:
                await self._start_job()
                code = await self._follow(hub)
            finally:
                self._is_ending = True
                await self._channel.close()
                await serving
        finally:
            await hub.close()
        return code

    # --- the start --------------------------------------------------------------------------------

    async def _start_job(self) -> None:
        request = self._channel.request
        await request(
            "initialize",
            {
                "clientID": "rankscope-run",
                "supportsRunInTerminalRequest": True,
                "tellsDriverExit": True,
                "linesStartAt1": True,
                "columnsStartAt1": True,
                "pathFormat": "path",
            },
        )
        launch = asyncio.ensure_future(request(*self._begins(), timeout=_SETUP_SECONDS))
        initialized = asyncio.ensure_future(self._initialized.wait())
        try:
            waits: set[asyncio.Future[Any]] = {launch, initialized}
            await asyncio.wait(waits, timeout=_SETUP_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not launch.done() or launch.exception() is None:
                await self._set_breakpoints()
                await request("configurationDone")
            await launch
        except (DapError, TimeoutError) as e:
            if self._child.exit_code.done():
                return  # said where it was started
            raise UserError(getattr(e, "code", "") or "launch-failed", f"The job did not start: {e}") from e
        finally:
            launch.cancel()
            initialized.cancel()

    def _begins(self) -> tuple[str, dict[str, Any]]:
        """The request that begins the session, and its arguments."""
        plan = self._plan
        arguments: dict[str, Any] = {
            "name": Path(plan.command[0]).name,
            "command": plan.command,
            "cwd": plan.cwd,
            "console": "integratedTerminal",
            "sessions": "single",
            "workspaceFolder": plan.cwd,
        }
        if plan.ranks:
            arguments["ranks"] = plan.ranks
        return "launch", arguments

    async def _set_breakpoints(self) -> None:
        by_file: dict[str, list[Location]] = {}
        for point in self._plan.points:
            by_file.setdefault(point.file, []).append(point)
        for file, points in by_file.items():
            wanted = {"source": {"path": file}, "breakpoints": [point.source_breakpoint() for point in points]}
            body = await self._channel.request("setBreakpoints", wanted)
            for point, answer in zip(points, body.get("breakpoints", ()), strict=False):
                self._asked[answer.get("id", -1)] = point
                self._heard_of_breakpoint(answer)

    # --- until the end ----------------------------------------------------------------------------

    async def _follow(self, hub: HubProcess) -> int:
        """Wait for the job's end, the hub's, or the time-out, whichever comes first."""
        exited, closed = self._child.exit_code, self._channel.closed
        ends: set[asyncio.Future[Any]] = {exited, closed}
        await asyncio.wait(ends, timeout=self._plan.timeout, return_when=asyncio.FIRST_COMPLETED)
        if not exited.done() and not closed.done():
            return await self._time_out()
        if not exited.done():
            self._report.notice("warning", "the hub has gone; the job goes on without RankScope.", hub.log_tail())
            await asyncio.wait({exited}, timeout=self._plan.timeout)
            if not exited.done():
                return await self._time_out()
        await self._job_ended(exited.result())
        return exited.result()

    async def _time_out(self) -> int:
        self._report.notice("warning", f"the job is ended: it ran for more than {self._plan.timeout:g} s.")
        exited = self._child.exit_code
        with contextlib.suppress(DapError, TimeoutError):
            await self._channel.request("terminate", timeout=_KILL_SECONDS)
        for number in (signal.SIGTERM, signal.SIGKILL):
            await asyncio.wait({exited}, timeout=_KILL_SECONDS)
            if not exited.done():
                self._child.send(number)
        await self._job_ended(TIMED_OUT)
        return TIMED_OUT

    async def _job_ended(self, code: int) -> None:
        """Tell the hub, let it end what is left, then say what never came about."""
        with contextlib.suppress(DapError, TimeoutError):
            await self._note_ranks()
            await self._channel.request("rankscope/driverExited", {"exitCode": code})
            await asyncio.wait_for(self._terminated.wait(), _END_SECONDS)
        if not self._channel.closed.done():
            self._say_what_was_missed()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)

    async def _note_ranks(self) -> None:
        members = (await self._channel.request("rankscope/ranks")).get("members", [])
        self._has_rank = any(member.get("role") == "rank" for member in members)

    def _say_what_was_missed(self) -> None:
        if not self._has_rank and not self._bound:
            self._report.notice("warning", "the job ended before any rank joined.")
        for number, point in self._asked.items():
            if number not in self._bound:
                why = self._answers[number].get("message") or "no process that it concerns has joined"
                self._report.breakpoint(point.text, why, is_verified=False)

    # --- what the hub says and asks ---------------------------------------------------------------

    async def do_run_in_terminal(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Start the job here, as the hub asks."""
        environment = outer_environment()
        for name, text in (arguments.get("env") or {}).items():
            if text is None:
                environment.pop(name, None)
            else:
                environment[name] = text
        try:
            pid = await self._child.start(arguments["args"], arguments["cwd"], environment)
        except UserError as e:
            self._report.notice("error", e.message, e.hint, e.code)
            raise
        return {"processId": pid}

    def on_event(self, name: str, body: dict[str, Any]) -> None:
        """One event of the hub."""
        if name == "initialized":
            self._initialized.set()
        elif name == "terminated":
            self._terminated.set()
        elif name == "stopped":
            self._spawn(self._stopped(body))
        elif name == "breakpoint":
            self._heard_of_breakpoint(body.get("breakpoint") or {})
        elif name == "output":
            self._heard_output(body)

    def _heard_of_breakpoint(self, answer: dict[str, Any]) -> None:
        number = answer.get("id", -1)
        point = self._asked.get(number)
        if point is None:
            return
        before = self._answers.get(number, {})
        self._answers[number] = answer
        if answer.get("verified"):
            self._bound.add(number)
        line = answer.get("line", point.line)
        if answer.get("verified") and line not in (point.line, before.get("line")):
            self._report.breakpoint(point.text, f"there is no code; it stops at line {line}.", is_verified=True)

    def _heard_output(self, body: dict[str, Any]) -> None:
        """A logpoint's text, or a notice; both come with their rank in brackets, line by line."""
        category = body.get("category", "console")
        for line in str(body.get("output", "")).splitlines():
            rank, text = _split_label(line)
            if category in ("console", "important"):
                level = "info" if category == "console" else "warning"
                self._report.notice(level, text if rank == "rankscope" else line)
            else:
                self._report.logged(rank, text)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- a stop -----------------------------------------------------------------------------------

    async def _stopped(self, body: dict[str, Any]) -> None:
        """Print one thread's stop and let it go on. Whatever fails, it goes on."""
        thread = body.get("threadId", 0)
        reason = str(body.get("description") or body.get("reason") or "pause")
        try:
            is_hit = bool(body.get("hitBreakpointIds"))
            self._report.stopped(await self._describe(thread, reason, body.get("text") or "", is_hit=is_hit))
        except (DapError, TimeoutError) as e:
            if not self._is_ending:
                self._report.notice("warning", f"a stop could not be shown: {e}")
        finally:
            with contextlib.suppress(DapError, TimeoutError):
                await self._channel.request("continue", {"threadId": thread, "singleThread": True})

    async def _describe(self, thread: int, reason: str, text: str, *, is_hit: bool) -> Stop:
        """A stop's place and values: where a breakpoint was hit, else the person's own innermost frame."""
        rank = await self._label(thread)
        ask = {"threadId": thread, "startFrame": 0, "levels": _MAX_FRAMES}
        frames = (await self._channel.request("stackTrace", ask, timeout=_ASK_SECONDS)).get("stackFrames", [])
        own = [frame for frame in frames if frame.get("presentationHint") != "subtle"] or frames
        if is_hit and own[:1] != frames[:1]:
            own = [*frames[:1], *own]
        values = [await self._evaluate(expression, own[0]["id"]) for expression in self._plan.prints if own]
        stack = [Frame(f["name"], (f.get("source") or {}).get("path", ""), f.get("line", 0)) for f in own]
        source = linecache.getline(stack[0].file, stack[0].line).strip() if stack else ""
        return Stop(rank, reason, stack, source, text, values)

    async def _evaluate(self, expression: str, frame: int) -> Value:
        ask = {"expression": expression, "frameId": frame, "context": "watch"}
        try:
            body = await self._channel.request("evaluate", ask, timeout=_ASK_SECONDS)
        except (DapError, TimeoutError) as e:
            return Value(expression, error=str(e).strip().splitlines()[-1] if str(e).strip() else repr(e))
        return Value(expression, value=body.get("result", ""))

    async def _label(self, thread: int) -> str:
        if thread not in self._labels:
            for member in (await self._channel.request("rankscope/ranks"))["members"]:
                self._labels.update(dict.fromkeys(member["threadIds"], member["label"]))
        return self._labels.get(thread, f"thread {thread}")


def _split_label(line: str) -> tuple[str, str]:
    found = _LABELLED.fullmatch(line)
    return (found[1], found[2]) if found else ("", line)
