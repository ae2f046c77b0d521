"""Who runs: continue, pause, step, goto, for one thread's member or for a set of ranks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from rankscope.dap.front_base import ANSWER_SECONDS, FrontBase
from rankscope.dap.messages import DapError
from rankscope.ranks import RankSet

if TYPE_CHECKING:
    from rankscope.hub.member import Member

_MAX_ABSENT = 8


class ControlRequests(FrontBase):
    """Requests that let members run or stop them."""

    async def do_continue(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Let the thread's member run on, with all its threads; the other ranks stay as they are."""
        member, _ = self.thread(arguments)
        if self.hub.fleet.control.is_in_state_for(member, "continue"):
            self.runs_on(member)
            self.asked.discard(member.id)
            if member.is_armed:
                await self.debug(member, "continue", {"threadId": "*"})
            self.hub.wanted.holds.let_go(member)
        return {"allThreadsContinued": not self.presents_several}

    async def do_pause(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Stop the thread's member, arming it when dormant. Answered before it has stopped."""
        member, _ = self.thread(arguments)
        self.asked.add(member.id)
        try:
            await asyncio.wait_for(asyncio.shield(self.hub.fleet.control.tell(member, "pause")), ANSWER_SECONDS)
        except (TimeoutError, asyncio.TimeoutError) as e:
            raise DapError(f"{member.label} did not answer 'pause' within {ANSWER_SECONDS:g} s.", "rank-late") from e
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
        self._follow(member, command)
        await self.debug(member, command, {"threadId": local, **(passed or {})})
        return {}

    def _follow(self, member: Member, action: str) -> None:
        """This front asks for the member's next stop: it takes the focus, and the debugger stays until then."""
        self.runs_on(member)
        self.asked.add(member.id)
        self.hub.wanted.holds.begin(member, action)

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
        self._follow(member, "goto")
        await self.debug(member, "goto", {"threadId": local, "targetId": targets[0]["id"]})
        return {}

    # --- many at once -----------------------------------------------------------------------------

    async def do_rankscope_control(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """``{action, members | ranks | scope, member?, focus?, path?, line?, timeout?}`` → who did it, or why not.

        ``members`` are ids, ``ranks`` is a rank set, ``scope`` is ``stopped``, ``session`` or ``group`` (that of
        ``member``); without any of the three: everybody. ``focus`` is the member whose next stop takes the editor's
        focus. ``path`` and ``line`` are where ``runToCursor`` goes. Answers within the deadline with what it has.
        """
        action = str(arguments.get("action"))
        control = self.hub.fleet.control
        members, absent = self._controlled(arguments)
        place = (str(arguments["path"]), int(arguments.get("line") or 0)) if arguments.get("path") else None
        timeout = arguments.get("timeout")
        if timeout is not None and not (isinstance(timeout, (int, float)) and timeout > 0):
            raise DapError(f"A time of {timeout!r} is no number of seconds.", "bad-timeout")
        concerned = [member for member in members if control.is_in_state_for(member, action)]
        for member in concerned:
            if action != "pause":
                self.runs_on(member)
            if member.id == arguments.get("focus"):
                (self.shower(member) or self).asked.add(member.id)
        outcome = await control.act(concerned, action, timeout, place)
        body = outcome.body()
        if absent:
            body["message"] += f"; not in the job: {', '.join(absent)}"
        return {**body, "absent": absent}

    def _controlled(self, arguments: dict[str, Any]) -> tuple[list[Member], list[str]]:
        """The live members that are meant, and what a rank set names that is not there. Raises :class:`DapError`."""
        ids, ranks, scope = arguments.get("members"), arguments.get("ranks"), arguments.get("scope")
        live = self.hub.fleet.select(None)
        if ids is not None:
            return [member for member in live if member.id in set(ids)], []
        members = [member for member in live if member.facts.role != "child" or member.is_armed]
        if ranks is not None:
            chosen = RankSet.parse(str(ranks), self.hub.wanted.settings.rank_sets)
            found = [member for member in members if chosen.contains(member.facts)]
            if not found:
                raise DapError(f"No rank that runs is in '{ranks}'.", "no-such-rank")
            return found, absent_from(chosen, members)
        if scope == "session":
            members = [member for member in self.shown.values() if member.is_live]
        elif scope == "group":
            of = self.member(str(arguments.get("member"))).facts
            members = [member for member in live if (member.facts.role, member.facts.group) == (of.role, of.group)]
        elif scope == "stopped":
            members = [member for member in members if member.stopped]
        elif scope is not None:
            raise DapError(f"'{scope}' is none of stopped, session, group", "bad-scope")
        return members, []


def absent_from(ranks: RankSet, members: Sequence[Member]) -> list[str]:
    """What a set names that no member is in, as it is written: ``7``, ``actor/7``, ``local:5``; a few at most."""
    absent = []
    for part in ranks.parts:
        here = {member.facts.rank for member in members if part.group in (None, member.facts.group)}
        head = f"{part.group}/" if part.group is not None else "" if part.axis == "rank" else f"{part.axis}:"
        if part.axis == "rank" and part.last is not None:
            numbers = range(part.first, part.last + 1, part.step)
            absent += [f"{head}{number}" for number in islice((n for n in numbers if n not in here), _MAX_ABSENT)]
        elif not any(part.contains(member.facts) for member in members):
            absent.append(f"{head}{'all' if part.last is None else part.first}")
    return absent[:_MAX_ABSENT]
