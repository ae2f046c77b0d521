"""A hub whose members are objects of this process: fronts are tested without processes, at full speed.

``FakeMember`` answers as debugpy does, as far as a front can tell. What was asked of it
is in ``asked``; ``silent`` makes it mute, ``is_blocked`` slow.
"""

from __future__ import annotations

import ast
import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from rankscope.dap.channel import Channel
from rankscope.dap.front import Front
from rankscope.dap.messages import DapError
from rankscope.hub.breakpoints import Wanted
from rankscope.hub.crashes import Crashes
from rankscope.hub.findings import Findings
from rankscope.hub.hangs import Hangs
from rankscope.hub.pause_limits import PauseLimits
from rankscope.hub.run_control import RunControl
from rankscope.hub.settings import LaunchSettings
from rankscope.ranks import RankFacts, RankSet
from support.dap_client import Session


class FakeMember:
    """One rank (or the driver). Stops when :meth:`hit` or :meth:`stop` says so."""

    def __init__(self, fleet: FakeFleet, label: str, facts: RankFacts) -> None:
        self.id = label.replace(" ", "-")
        self.label = label
        self.facts = facts
        self.number = len(fleet.members)
        self.hello = SimpleNamespace(
            roots=[], host="here", pid=1000 + self.number, name=label, cwd="/", ray={}, member=self.id
        )
        self.state_when_running = "running"
        self.is_armed = self.is_greyed = False
        self.is_live = True
        self.is_local = False
        self.incarnation = 0
        self.ending = ""
        self.top: dict[str, Any] | None = {"name": "step", "path": "/code/train.py", "line": 9, "call": "all_reduce"}
        frames = [{"name": "all_reduce", "path": "/code/train.py", "line": 9}]
        self.stacks: Any = {"threads": [{"thread": "MainThread", "ident": 1, "is_main": True, "frames": frames}]}
        self.stopped: dict[int, dict[str, Any]] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.sent: list[Any] = []
        self.silent: set[str] = set()
        self.is_blocked = False  # in a C call: it takes a pause or step, and stops later
        self.refused_lines: set[int] = set()
        self.copies: dict[str, list[str]] = {}
        self.lines: dict[str, list[dict[str, Any]]] = {}
        self.functions: list[dict[str, Any]] = []
        self.exceptions: dict[str, Any] = {}
        self.variables = {"loss": "0.25", "step": "3"}
        self.limits: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {}  # to what is compared, by expression
        self._fleet = fleet
        self._breakpoint_ids = self._numbers = 0
        self._arming = asyncio.Lock()

    @property
    def state(self) -> str:
        if not self.is_live:
            return "crashed" if self.ending else "exited"
        return "paused" if self.stopped else self.state_when_running

    def send(self, message: Any) -> None:
        self.sent.append(message)

    # --- what the job does ------------------------------------------------------------------------

    def stop(self, reason: str = "breakpoint", **more: Any) -> None:
        body = {"reason": reason, "threadId": 7, "allThreadsStopped": True, **more}
        self.stopped[7] = body
        self._fleet.event(self, "stopped", body)

    def hit(self, path: str, line: int) -> None:
        """The line is run: stops where a breakpoint of it is set here."""
        ids = [point["id"] for point in self.lines.get(path, []) if point["line"] == line]
        assert ids, f"{self.label} has no breakpoint at {path}:{line}, it has {self.lines}"
        self.stop(hitBreakpointIds=ids)

    def print(self, text: str) -> None:
        self._fleet.event(self, "output", {"category": "stdout", "output": text})

    def _go(self) -> None:
        self.stopped.clear()
        self._fleet.event(self, "continued", {"threadId": 7, "allThreadsContinued": True})

    # --- the Member protocol ----------------------------------------------------------------------

    async def arm(self, why: str) -> None:
        async with self._arming:
            if self.is_armed or not self.is_live:
                return
            if "arm" in self.silent:
                raise DapError(f"{self.label} could not be armed ({why}): no answer within 20 s")
            await self._fleet.wanted.configure(self)  # type: ignore[arg-type]
            self.is_armed = True
            self._fleet.changed(self)

    async def disarm(self) -> None:
        async with self._arming:
            if self.is_armed:
                self.is_armed = False
                if self.stopped:
                    self._go()
                self._fleet.changed(self)

    async def ask(self, what: str, arguments: dict[str, Any], *, timeout: float = 3.0) -> dict[str, Any]:
        if what in self.silent:
            raise asyncio.TimeoutError
        if what == "lookup":
            return dict(self.answers.get(arguments["expression"], {"call": "all_reduce"}))
        if what == "limits":
            return {"limits": self.limits}
        if what == "top":
            return {"frame": self.top}
        if what == "paths":
            return {"found": {one["path"]: self.copies.get(one["path"], [one["path"]]) for one in arguments["paths"]}}
        return dict(self.stacks)

    async def replied(self, begin: Callable[[int], Awaitable[object]], *, timeout: float) -> Any:
        """The answer to what ``begin`` evaluates here; ``silent`` with ``reply`` it stays out."""
        number = self._numbers = self._numbers + 1
        await begin(number)
        if "reply" in self.silent:
            await asyncio.sleep(timeout)
            raise asyncio.TimeoutError
        head = f".start({number}, "
        start = next(asked["expression"] for _, asked in self.asked if head in asked.get("expression", ""))
        question = json.loads(ast.literal_eval(start[start.index(head) + len(head) : -1]))
        return self.answers.get(question["expression"], {"kind": "text", "text": question["expression"]})

    async def look(self) -> dict[str, Any]:
        return await self.ask("top", {})

    async def debug(
        self, command: str, arguments: dict[str, Any] | None = None, *, timeout: float = 10.0
    ) -> dict[str, Any]:
        arguments = arguments or {}
        self.asked.append((command, arguments))
        await asyncio.sleep(0)
        if command in self.silent:
            raise asyncio.TimeoutError
        answer = getattr(self, f"_on_{command}", None)
        return {} if answer is None else answer(arguments) or {}

    # --- debugpy's answers ------------------------------------------------------------------------

    def _on_setBreakpoints(self, arguments: dict[str, Any]) -> dict[str, Any]:  # noqa: N802 - DAP's name
        points = []
        for point in arguments["breakpoints"]:
            self._breakpoint_ids += 1
            answer = {"id": self._breakpoint_ids, "verified": True, "line": point["line"]}
            if point["line"] in self.refused_lines:
                answer |= {"verified": False, "message": "Breakpoint added to invalid line."}
            points.append({**point, **answer})
        self.lines[arguments["source"]["path"]] = points
        return {"breakpoints": [{k: p[k] for k in ("id", "verified", "line", "message") if k in p} for p in points]}

    def _on_setFunctionBreakpoints(self, arguments: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self.functions = arguments["breakpoints"]
        return {"breakpoints": [{"id": 900 + at, "verified": True} for at, _ in enumerate(self.functions)]}

    def _on_setExceptionBreakpoints(self, arguments: dict[str, Any]) -> None:  # noqa: N802
        self.exceptions = arguments

    def _on_threads(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"threads": [{"id": 7, "name": "MainThread"}, {"id": 8, "name": "Thread-1"}]}

    def _on_stackTrace(self, arguments: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        path = next(iter(self.lines), "/code/train.py")
        frames = [
            {"id": 50 + at, "name": f"f{at}", "line": 10 + at, "column": 1, "source": {"path": path}}
            for at in range(30)
        ]
        start = arguments.get("startFrame") or 0
        return {"stackFrames": frames[start : start + (arguments.get("levels") or 30)], "totalFrames": 30}

    def _on_scopes(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"scopes": [{"name": "Locals", "variablesReference": arguments["frameId"], "expensive": False}]}

    def _on_variables(self, _: dict[str, Any]) -> dict[str, Any]:
        made = [{"name": name, "value": value, "variablesReference": 0} for name, value in self.variables.items()]
        return {"variables": [*made, {"name": "rows", "value": "[...]", "variablesReference": 77}]}

    def _on_setVariable(self, arguments: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self.variables[arguments["name"]] = arguments["value"]
        return {"value": arguments["value"], "variablesReference": 0}

    def _on_evaluate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"result": f"{self.label}: {arguments['expression']}", "variablesReference": 78}

    def _on_exceptionInfo(self, _: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"exceptionId": "ValueError", "breakMode": "always"}

    def _on_gotoTargets(self, arguments: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"targets": [{"id": 5, "label": "there", "line": arguments["line"]}]}

    def _on_stepInTargets(self, _: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"targets": [{"id": 0, "label": "f"}, {"id": 1, "label": "g"}]}

    def _on_continue(self, _: dict[str, Any]) -> dict[str, Any]:
        self._go()
        return {"allThreadsContinued": True}

    def _on_pause(self, _: dict[str, Any]) -> None:
        if not self.is_blocked:
            self.stop("pause")

    def _step(self, _: dict[str, Any]) -> None:
        self._go()
        if not self.is_blocked:
            self.stop("step")

    _on_next = _on_stepIn = _on_stepOut = _step  # noqa: N815 - DAP's names

    def _on_goto(self, _: dict[str, Any]) -> None:
        self._go()
        self.stop("goto")


class FakeFleet:
    """Members join when :meth:`join` says so."""

    def __init__(self, wanted: Wanted) -> None:
        self.members: dict[str, FakeMember] = {}
        self.listeners: list[Any] = []
        self.wanted = wanted
        self.has_ended = False
        self.findings = Findings(self)  # type: ignore[arg-type]
        self.crashes = Crashes(self)  # type: ignore[arg-type]
        self.hangs = Hangs(self)  # type: ignore[arg-type]
        self.control = RunControl(self)  # type: ignore[arg-type]
        self.missing = 0

    def missing_actors(self) -> int:
        return self.missing

    def select(self, ranks: RankSet | None) -> list[FakeMember]:
        return [m for m in self.members.values() if m.is_live and (ranks is None or ranks.contains(m.facts))]

    async def join(self, label: str, **facts: Any) -> FakeMember:
        member = FakeMember(self, label, RankFacts(**facts))
        self.members[member.id] = member
        for listener in list(self.listeners):
            listener.member_joined(member)
        if self.wanted.wants(member):  # type: ignore[arg-type]
            await member.arm("it starts")
        return member

    async def join_driver(self) -> FakeMember:
        return await self.join("driver train.py", role="driver")

    async def join_rank(self, rank: int, world_size: int = 4, group: str = "actor", **facts: Any) -> FakeMember:
        facts = {"is_final": True, "local_rank": rank, **facts}
        return await self.join(f"{group} {rank}", group=group, rank=rank, world_size=world_size, **facts)

    def leave(self, member: FakeMember, ending: str = "") -> None:
        member.ending = ending
        member.is_live = member.is_armed = False
        member.stopped.clear()
        for listener in list(self.listeners):
            listener.member_left(member)

    def changed(self, member: FakeMember) -> None:
        for listener in list(self.listeners):
            listener.member_changed(member)

    def event(self, member: FakeMember, event: str, body: dict[str, Any]) -> None:
        for listener in list(self.listeners):
            listener.member_event(member, event, dict(body))

    def notice(self, level: str, text: str, member: Any = None) -> None:
        for listener in list(self.listeners):
            listener.notice(level, text, member)


@dataclass
class FakeJob:
    """A driver that ends when told."""

    exit_code: int | None = None
    was_launched: bool = False

    def leave_running(self) -> None:
        """Nobody's to end."""
        self.was_launched = False

    hub: Any = None

    def driver_exited(self, code: int) -> None:
        self.exit_code = code
        for front in [*(f for f in self.hub.fronts if f is not self.hub.root), self.hub.root]:
            front.job_ended(code)


@dataclass
class FakeHub:
    """The hub as a front sees it. Leaving the context closes every connection."""

    settings: LaunchSettings | None = None
    root: Any = None
    fronts: list[Any] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    async def __aenter__(self) -> FakeHub:  # noqa: PYI034 - Self came with 3.11
        self.wanted = Wanted()
        self.fleet = FakeFleet(self.wanted)
        self.wanted.fleet = self.fleet  # type: ignore[assignment]
        self.fleet.findings.listeners.append(lambda finding: self.root and self.root.finding(finding))
        self.limits = PauseLimits(self.fleet, lambda: self.root and self.root.ranks_changed())  # type: ignore[arg-type]
        self.job = FakeJob(hub=self)
        self.sessions: list[Session] = []
        self._serving: list[asyncio.Task[None]] = []
        return self

    async def __aexit__(self, *_: object) -> None:
        self.limits.close()
        for session in self.sessions:
            await session.close()
        await asyncio.wait_for(asyncio.gather(*self._serving), 5)

    async def launch(self, settings: LaunchSettings, front: Any) -> None:
        self.job.was_launched = True
        self.done.append("launch")

    def apply(self, settings: LaunchSettings) -> None:
        self.done.append("apply")

    async def end_job(self, why: str = "") -> None:
        self.done.append(f"end_job {why}".rstrip())
        self.job.driver_exited(143)

    async def restart(self) -> None:
        self.done.append("restart")

    def become_root(self, front: Any) -> None:
        self.root = front

    def front_closed(self, front: Any) -> None:
        self.fronts.remove(front)

    # --- clients ----------------------------------------------------------------------------------

    async def connect(self, name: str, **client: Any) -> Session:
        """A DAP connection that has been initialized."""
        ours, theirs = socket.socketpair()
        front = Front(Channel(*await asyncio.open_connection(sock=theirs)), self)  # type: ignore[arg-type]
        self.fronts.append(front)
        self._serving.append(asyncio.ensure_future(front.serve()))
        session = Session(Channel(*await asyncio.open_connection(sock=ours)), name)
        self.sessions.append(session)
        await session.request("initialize", {"clientID": "test", "supportsRankscopeChildren": True, **client})
        return session

    async def root_session(
        self,
        lines: dict[str, list[dict[str, Any]]] | None = None,
        client: dict[str, Any] | None = None,
        **arguments: Any,
    ) -> Session:
        """A root session that has launched, with ``lines`` as its breakpoints (path → DAP breakpoints)."""
        session = await self.connect("root", **(client or {}))
        await configure(session, "launch", {"command": "python train.py", "cwd": "/", **arguments}, lines)
        return session

    async def child_session(self, ranks: str, lines: dict[str, list[dict[str, Any]]] | None = None) -> Session:
        session = await self.connect(ranks)
        await configure(session, "attach", {"session": {"ranks": ranks}}, lines)
        return session


async def configure(
    session: Session, command: str, arguments: dict[str, Any], lines: dict[str, list[dict[str, Any]]] | None = None
) -> None:
    """The opening of a session as VS Code does it. Raises what ``command`` is answered with."""
    starting = asyncio.ensure_future(session.request(command, arguments))
    await asyncio.wait(
        [starting, asyncio.ensure_future(session.wait_for("initialized"))], return_when=asyncio.FIRST_COMPLETED
    )
    if not starting.done():
        for path, breakpoints in (lines or {}).items():
            await session.request("setBreakpoints", {"source": {"path": path}, "breakpoints": breakpoints})
        await session.request("configurationDone")
    await starting
