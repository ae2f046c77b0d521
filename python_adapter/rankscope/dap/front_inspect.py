"""Looking into members: threads, stacks, scopes, variables, expressions, sources."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from rankscope.dap.front_base import FrontBase
from rankscope.dap.messages import DapError

if TYPE_CHECKING:
    from rankscope.hub.member import Member

MAIN = "MainThread"
_DORMANT = 0  # the thread id of a member without debugger
_THREADS_SECONDS = 2.0
_EVALUATE_SECONDS = 600.0


class InspectRequests(FrontBase):
    """Requests that change nothing about who runs."""

    # --- threads and stacks -----------------------------------------------------------------------

    async def do_threads(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The threads of every member shown; one that is late or dormant is given as its main thread."""
        del arguments
        found = await asyncio.gather(*(self._threads(member) for member in list(self.shown.values())))
        return {"threads": [thread for threads in found for thread in threads]}

    async def _threads(self, member: Member) -> list[dict[str, Any]]:
        names: dict[int, str] = {}
        if member.is_armed:
            try:
                body = await member.debug("threads", {}, timeout=_THREADS_SECONDS)
                names = {int(thread["id"]): str(thread["name"]) for thread in body.get("threads") or []}
            except (DapError, TimeoutError, asyncio.TimeoutError):
                names = dict.fromkeys(member.stopped, MAIN)
        names = names or {self.ids.threads.first(member.id) or _DORMANT: MAIN}
        main = next((local for local, name in names.items() if name == MAIN), None)
        if main is not None:
            self.ids.threads.rename(member.id, _DORMANT, main)
        self.thread_names.update({(member.id, local): name for local, name in names.items()})
        return [
            {
                "id": self.ids.threads.give(member.id, local),
                "name": f"{member.label} · {name}" if self.presents_several else name,
            }
            for local, name in names.items()
        ]

    async def do_stack_trace(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """A page of a thread's stack: debugpy's where it is stopped, else what its agent sees at once."""
        member, local = self.thread(arguments)
        if not member.stopped:
            return await self._running_stack(member, local, arguments)
        body = await self.debug(member, "stackTrace", {**arguments, "threadId": local})
        frames = [self._frame(member, frame) for frame in body.get("stackFrames") or []]
        return {**body, "stackFrames": frames}

    def _frame(self, member: Member, frame: dict[str, Any]) -> dict[str, Any]:
        frame["id"] = self.ids.frames.give(member.id, int(frame["id"]))
        if frame.get("source"):
            frame["source"] = self._source(member, frame["source"])
        return frame

    def _source(self, member: Member, source: dict[str, Any]) -> dict[str, Any]:
        path = source.get("path")
        if path:
            source["path"] = self.hub.wanted.paths.in_client(path)
        if source.get("sourceReference"):
            source["sourceReference"] = self.ids.sources.give(member.id, int(source["sourceReference"]))
        return source

    async def _running_stack(self, member: Member, local: int, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = await member.ask("stacks", {})
        except (TimeoutError, asyncio.TimeoutError) as e:
            raise DapError(f"{member.label} did not tell its stacks in time.", "rank-late") from e
        name = self.thread_names.get((member.id, local), MAIN)
        threads = answer.get("threads") or []
        thread: dict[str, Any] = next(
            (t for t in threads if t.get("thread") == name or (name == MAIN and t.get("is_main"))), {"frames": []}
        )
        start = int(arguments.get("startFrame") or 0)
        levels = int(arguments.get("levels") or 0) or len(thread["frames"])
        frames = [
            {
                # Below zero: no frame of debugpy's, and nothing can be looked up in it.
                "id": self.ids.frames.give(member.id, -1 - at),
                "name": frame["name"],
                "line": frame["line"],
                "column": 1,
                "source": {"path": self.hub.wanted.paths.in_client(frame["path"])},
            }
            for at, frame in list(enumerate(thread["frames"]))[start : start + levels]
        ]
        return {"stackFrames": frames, "totalFrames": len(thread["frames"])}

    # --- scopes and variables ---------------------------------------------------------------------

    async def do_scopes(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The scopes of a frame; none for a frame that runs."""
        member, local = self._frame_of(arguments)
        if local < 0:
            return {"scopes": []}
        body = await self.debug(member, "scopes", {"frameId": local})
        return {"scopes": [self._reference(member, scope) for scope in body.get("scopes") or []]}

    def _frame_of(self, arguments: dict[str, Any]) -> tuple[Member, int]:
        member_id, local = self.ids.frames.find(arguments.get("frameId"))
        return self.member(member_id), local

    def _stopped_frame(self, arguments: dict[str, Any]) -> tuple[Member, int]:
        member, local = self._frame_of(arguments)
        if local < 0:
            raise DapError(f"{member.label} runs: pause it to look inside.", "not-stopped")
        return member, local

    def _reference(self, member: Member, holder: dict[str, Any]) -> dict[str, Any]:
        if holder.get("variablesReference"):
            holder["variablesReference"] = self.ids.variables.give(member.id, int(holder["variablesReference"]))
        return holder

    def _variable_of(self, arguments: dict[str, Any]) -> tuple[Member, dict[str, Any]]:
        member_id, local = self.ids.variables.find(arguments.get("variablesReference"))
        return self.member(member_id), {**arguments, "variablesReference": local}

    async def do_variables(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The variables below a reference, a page of them when ``start`` and ``count`` say so."""
        member, passed = self._variable_of(arguments)
        body = await self.debug(member, "variables", passed)
        variables = body.get("variables") or []
        start, count = int(arguments.get("start") or 0), int(arguments.get("count") or 0)
        if count and len(variables) > count:  # debugpy pages nothing
            variables = variables[start : start + count]
        return {"variables": [self._reference(member, variable) for variable in variables]}

    async def do_set_variable(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Change a variable of a stopped member."""
        member, passed = self._variable_of(arguments)
        return self._reference(member, await self.debug(member, "setVariable", passed))

    # --- expressions ------------------------------------------------------------------------------

    async def do_evaluate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Evaluate in a frame, or without one where the session has just one member to ask."""
        if arguments.get("frameId") is None:
            member = self._only_stopped()
            passed = {key: value for key, value in arguments.items() if key != "frameId"}
        else:
            member, local = self._stopped_frame(arguments)
            passed = {**arguments, "frameId": local}
        return self._reference(member, await self.debug(member, "evaluate", passed, _EVALUATE_SECONDS))

    def _only_stopped(self) -> Member:
        stopped = [member for member in self.shown.values() if member.stopped]
        if len(stopped) != 1:
            why = "choose a frame" if stopped else "nothing is stopped here: pause a rank first"
            raise DapError(f"Where to evaluate this? {why.capitalize()}.", "not-stopped")
        return stopped[0]

    async def do_set_expression(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Assign to an expression in a frame."""
        member, local = self._stopped_frame(arguments)
        body = await self.debug(member, "setExpression", {**arguments, "frameId": local})
        return self._reference(member, body)

    async def do_completions(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Completions in a frame; none without one."""
        if arguments.get("frameId") is None:
            return {"targets": []}
        member, local = self._stopped_frame(arguments)
        return await self.debug(member, "completions", {**arguments, "frameId": local})

    async def do_exception_info(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The exception a thread has stopped on."""
        member, local = self.thread(arguments)
        info = await self.debug(member, "exceptionInfo", {"threadId": local})
        name = str(info.get("exceptionId", "")).partition("(note: full exception trace")[0]  # debugpy's, of a held one
        return {**info, "exceptionId": name.rstrip()}

    # --- sources and modules ----------------------------------------------------------------------

    async def do_source(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The text behind a source reference that a frame came with."""
        source = dict(arguments.get("source") or {})
        number = source.get("sourceReference") or arguments.get("sourceReference")
        member_id, local = self.ids.sources.find(number)
        source["sourceReference"] = local
        return await self.debug(self.member(member_id), "source", {"source": source, "sourceReference": local})

    async def do_modules(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The modules of the members shown that have the debugger, each file once; a page of them."""
        armed = [member for member in self.shown.values() if member.is_armed]
        answers = await asyncio.gather(*(self.debug(member, "modules", {}) for member in armed), return_exceptions=True)
        modules: dict[str, dict[str, Any]] = {}
        for answer in answers:
            for module in answer.get("modules") or [] if isinstance(answer, dict) else []:
                if module.get("path"):
                    module["path"] = self.hub.wanted.paths.in_client(module["path"])
                key = f"{module.get('name')}\0{module.get('path')}"
                modules.setdefault(key, {**module, "id": len(modules) + 1})
        start = int(arguments.get("startModule") or 0)
        count = int(arguments.get("moduleCount") or 0) or len(modules)
        return {"modules": list(modules.values())[start : start + count], "totalModules": len(modules)}
