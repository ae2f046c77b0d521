"""Who runs: continue, pause, step, goto, for one thread's member or for a set of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankscope.dap.front_base import ANSWER_SECONDS, FrontBase
from rankscope.dap.messages import DapError
from rankscope.hub import run_control
from rankscope.ranks import RankSet

if TYPE_CHECKING:
    from rankscope.hub.member import Member


class ControlRequests(FrontBase):
    """Requests that let members run or stop them."""

    async def do_continue(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Let the thread's member run on, with all its threads; the other ranks stay as they are."""
        member, _ = self.thread(arguments)
        if run_control.is_in_state_for(self.hub.fleet, member, "continue"):
            self.runs_on(member)
            self.asked.discard(member.id)
            await self.debug(member, "continue", {"threadId": "*"})
            self.hub.wanted.let_go(member)
        return {"allThreadsContinued": not self.presents_several}

    async def do_pause(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Stop the thread's member, arming it when dormant. Answered before it has stopped."""
        member, _ = self.thread(arguments)
        self.asked.add(member.id)
        self.hub.wanted.hold(member)
        await run_control.pause(self.hub.fleet, member, ANSWER_SECONDS, waits=False)
        return {}

    async def do_next(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Step over."""
        return await self._step("next", arguments)

    async def do_step_out(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Step out."""
        return await self._step("stepOut", arguments)

    async def do_step_in(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Step in, into ``targetId`` when given."""
        target = arguments.get("targetId")
        passed = {} if target is None else {"targetId": self.ids.step_targets.find(target)[1]}
        return await self._step("stepIn", arguments, passed)

    async def _step(
        self, command: str, arguments: dict[str, Any], passed: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        member, local = self.thread(arguments)
        if not member.stopped:
            raise DapError(f"{member.label} runs: only a stopped rank can step.", "not-stopped")
        self._follow(member)
        await self.debug(member, command, {"threadId": local, **(passed or {})})
        return {}

    def _follow(self, member: Member) -> None:
        """This front asks for the member's next stop: it takes the focus, and the debugger stays until then."""
        self.runs_on(member)
        self.asked.add(member.id)
        self.hub.wanted.hold(member)

    async def do_step_in_targets(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The calls of a frame's line that can be stepped into."""
        member_id, local = self.ids.frames.find(arguments.get("frameId"))
        member = self.member(member_id)
        if local < 0:
            return {"targets": []}
        body = await self.debug(member, "stepInTargets", {"frameId": local})
        for target in body.get("targets") or []:
            target["id"] = self.ids.step_targets.give(member_id, int(target["id"]))
        return body

    async def do_goto_targets(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The line itself; whether a thread can jump there shows when it does."""
        path, line = str((arguments.get("source") or {}).get("path", "")), int(arguments["line"])
        number = self.ids.goto_targets.give("", (path, line))
        return {"targets": [{"id": number, "label": f"{path}:{line}", "line": line}]}

    async def do_goto(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Let a stopped thread go on at a target."""
        member, local = self.thread(arguments)
        _, (path, line) = self.ids.goto_targets.find(arguments.get("targetId"))
        place = (await self.hub.wanted.paths.in_member(member, path))[0]
        body = await self.debug(member, "gotoTargets", {"source": {"path": place}, "line": line})
        targets = body.get("targets") or []
        if not targets:
            raise DapError(f"{member.label} cannot go to line {line}.", "bad-target")
        self._follow(member)
        await self.debug(member, "goto", {"threadId": local, "targetId": targets[0]["id"]})
        return {}

    # --- many at once -----------------------------------------------------------------------------

    async def do_rankscope_control(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """``{action, members | ranks | scope: "stopped" | "session", timeout?}`` → who did it, is late, or could not.

        ``members`` are ids. Without any of the three: everybody. Answers within the deadline with what it has.
        """
        action = str(arguments.get("action"))
        ids, ranks, scope = arguments.get("members"), arguments.get("ranks"), arguments.get("scope")
        if ids is not None:
            asked = set(ids)
            members = [member for member in self.hub.fleet.select(None) if member.id in asked]
        elif ranks is not None:
            members = self.hub.fleet.select(RankSet.parse(str(ranks), self.hub.wanted.settings.rank_sets))
        elif scope == "session":
            members = [member for member in self.shown.values() if member.is_live]
        else:
            members = self.hub.fleet.select(None)
        if scope == "stopped":
            members = [member for member in members if member.stopped]
        if ids is None:
            members = [member for member in members if member.facts.role != "child" or member.is_armed]
        for member in members:
            if action == "continue":
                self.runs_on(member)
            elif run_control.is_in_state_for(self.hub.fleet, member, action):
                self.hub.wanted.hold(member)
        outcome = await run_control.control(self.hub.fleet, members, action, arguments.get("timeout"))
        if action == "continue":
            for member in members:
                self.hub.wanted.let_go(member)
        return outcome.body()
