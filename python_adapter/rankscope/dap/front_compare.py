"""One expression over a rank set: as rows for the panel, as lines of text in the debug console."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rankscope.dap.front_inspect import InspectRequests
from rankscope.dap.messages import DapError
from rankscope.hub import compare, delta, evaluation, side_effects
from rankscope.hub.conditions import compile_expression
from rankscope.hub.member import who
from rankscope.ranks import RankSet

if TYPE_CHECKING:
    from rankscope.hub.member import Member

_SECONDS = 5.0
_MAX_SECONDS = 60.0
_FIELDS = ("label", "rank", "group", "node")
# `@0-3 loss`: a set, then a blank. A decorator that is pasted has its line to itself.
_ASKED = re.compile(r"@(?P<ranks>[^\s@]*)[ \t]+(?P<expression>\S.*)", re.DOTALL)
_CONTEXTS = ("repl", "watch")


class CompareRequests(InspectRequests):
    """Asks many ranks at once; whoever does not answer in time is named."""

    async def do_rankscope_compare(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """``{expression, members? | ranks?, frameId?, reference?, withDelta?, timeout?}``; by default every rank.

        With ``frameId`` each rank evaluates in its frame of that function. The answer is ``{expression, rows, groups,
        stats?, late, absent, warning, message}``: see :mod:`rankscope.hub.compare`; with ``withDelta`` rows have what
        :func:`rankscope.hub.delta.add` gives, against the member ``reference`` (default: the first of the majority).
        Raises :class:`UserError` for a set or an expression that cannot be read.
        """
        members, absent = self._compared_members(arguments)
        keep = secrets.token_hex(8) if arguments.get("withDelta") else ""
        body = await self._compared(members, arguments, keep)
        rows, groups = body["rows"], body["groups"]
        if keep and groups:
            reference = str(arguments.get("reference") or groups[0]["members"][0])
            body["reference"] = reference
            await delta.add(rows, {member.id: member for member in members}, reference, keep)
        message = compare.message(rows, groups, absent=absent, warning=body["warning"])
        return {**body, "absent": absent, "message": message}

    async def _compared(self, members: Sequence[Member], arguments: dict[str, Any], keep: str = "") -> dict[str, Any]:
        expression = str(arguments.get("expression") or "").strip()
        compile_expression("Expression", expression)
        seconds = min(float(arguments.get("timeout") or _SECONDS), _MAX_SECONDS)
        function = await self._function(arguments.get("frameId"))
        question = evaluation.Question(expression, seconds, function, keep)
        answers = await evaluation.ask(members, question, self.hub.wanted.paths)
        rows = [_row(member, answer) for member, answer in zip(members, answers, strict=True)]
        by_id = {member.id: member for member in members}
        names = self.rank_writer()
        groups = compare.groups(rows, lambda same: names([by_id[row["member"]] for row in same]))
        return {
            "expression": expression,
            "rows": rows,
            "groups": groups,
            "stats": compare.statistics_of(rows),
            "late": [row["label"] for row in rows if row["kind"] == "late"],
            "warning": side_effects.warning(expression),
        }

    async def _function(self, frame_id: object) -> evaluation.Function | None:
        """The function of the frame that is selected; ``None`` without one, or when its rank runs."""
        if frame_id is None:
            return None
        member, local = self._frame_of({"frameId": frame_id})
        return None if local < 0 else await evaluation.function_of(member, local, self.hub.wanted.paths)

    def _compared_members(self, arguments: dict[str, Any]) -> tuple[list[Member], str]:
        """Who is asked, by rank, and whom nobody is. Of a rank its newest process, also when that has ended."""
        members = self.hub.fleet.members
        ids = arguments.get("members")
        if ids is not None:
            return [members[name] for name in dict.fromkeys(ids) if name in members], ""
        ranks = RankSet.parse(str(arguments.get("ranks") or "all"), self.hub.wanted.settings.rank_sets)
        newest: dict[tuple[str, str, int | None], Member] = {}
        for member in members.values():
            facts = member.facts
            if facts.role in ("driver", "rank") and ranks.contains(facts):
                key = (facts.role, facts.group, facts.rank)
                if member.is_live or not (key in newest and newest[key].is_live):
                    newest[key] = member
        found = sorted(newest.values(), key=lambda m: (m.facts.role, m.facts.group, m.facts.rank or 0, m.number))
        return found, ranks.absent([member.facts for member in members.values()])

    # --- the debug console ------------------------------------------------------------------------

    async def do_evaluate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """``@0-3 loss`` asks those ranks; anything else is evaluated in its frame."""
        asked = _ASKED.fullmatch(str(arguments.get("expression") or ""))
        if asked is None or arguments.get("context") not in _CONTEXTS:
            return await super().do_evaluate(arguments)
        if not asked["ranks"]:
            raise DapError("Which ranks? Write @all, @0-3 or @actor/0, a blank, and an expression.", "bad-rank-set")
        members, absent = self._compared_members({"ranks": asked["ranks"]})
        if not members:
            raise DapError(f"No such rank: {absent or asked['ranks']}.", "no-such-rank")
        body = await self._compared(members, {**arguments, "expression": asked["expression"]})
        text = compare.lines(body["groups"], absent=absent, warning=body["warning"])
        return {"result": text, "variablesReference": 0}

    async def do_completions(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """After ``@0-3 `` those of the frame that is selected."""
        text = str(arguments.get("text") or "")
        asked = _ASKED.fullmatch(text)
        if asked is None:
            return await super().do_completions(arguments)
        head = asked.start("expression")
        passed = {**arguments, "text": text[head:], "column": max(1, int(arguments.get("column") or 1) - head)}
        body = await super().do_completions(passed)
        targets = [
            {**target, "start": target["start"] + head} if "start" in target else target for target in body["targets"]
        ]
        return {"targets": targets}


def _row(member: Member, answer: object) -> compare.Row:
    about = who(member)
    told = {"member": member.id, **{name: about[name] for name in _FIELDS}, "state": member.state}
    return compare.row(told, answer)
