"""Where everybody is: all ranks' stacks as one tree, running and blocked ranks included, nobody stopped for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rankscope.dap.front_base import FrontBase
from rankscope.dap.messages import DapError
from rankscope.hub.native_stacks import Spy
from rankscope.hub.stacks import Reader, Thread, Tree
from rankscope.ranks import DRIVER, RankSet

if TYPE_CHECKING:
    from rankscope.hub.member import Member

_SECONDS = 0.5
_LOCALS_SECONDS = 2.0  # an agent loads first what reads values
_SECONDS_EACH = 0.001  # many answers take the hub a while to read
_MAX_SPIED = 64
_MAX_NAMES, _MAX_TEXT = 100, 200


@dataclass
class _Found:
    """What one request came to, members by their number in it. ``alike``: who stands at the same stacks."""

    alike: dict[tuple[int, str], tuple[list[Thread], list[int]]] = field(default_factory=dict)
    variables: dict[int, dict[int, list[dict[str, str]]]] = field(default_factory=dict)
    spied: dict[int, list[tuple[Thread, str]]] = field(default_factory=dict)
    late: dict[int, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


class StackRequests(FrontBase):
    """Asks every agent at once, with one bound, and names who has not answered."""

    async def do_rankscope_stacks(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """``{members?, ranks?, withLocals?, native?}``: by default every rank and the driver.

        The answer is ``{tree, late, failed, native, count, seconds}``; a node of the tree is ``{name, path, line,
        kind, members, ranks, state?, call?, locals?, children}``, outermost frames first, fewest members first.
        Native frames by py-spy: of everybody with ``native``, else of those of this host that do not answer.
        """
        started = time.monotonic()
        members = self._asked(arguments)
        found = _Found()
        reader = Reader(self.hub.wanted.paths.in_client)
        await self._ask_agents(members, reader, found, with_locals=bool(arguments.get("withLocals")))
        await self._spy(members, found, is_wanted=bool(arguments.get("native")))
        tree = _tree(members, found)
        names = self.rank_writer()
        drivers = {number for number, member in enumerate(members) if member.facts.role == DRIVER}

        def write(who: list[int]) -> str:
            return names([members[number] for number in who])

        return {
            "tree": tree.described([member.id for member in members], write, drivers),
            "late": [{"member": members[n].id, "label": members[n].label, "why": why} for n, why in found.late.items()],
            "failed": found.failed,
            "native": [members[number].label for number in sorted(found.spied)],
            "count": len({*found.spied, *(number for _, who in found.alike.values() for number in who)}),
            "seconds": round(time.monotonic() - started, 4),
        }

    def _asked(self, arguments: dict[str, Any]) -> list[Member]:
        fleet = self.hub.fleet
        ids, text = arguments.get("members"), arguments.get("ranks")
        if ids is not None:
            return [fleet.members[name] for name in dict.fromkeys(ids) if name in fleet.members]
        ranks = None if text is None else RankSet.parse(str(text), self.hub.wanted.settings.rank_sets)
        return [member for member in fleet.select(ranks) if member.facts.role in (DRIVER, "rank")]

    async def _ask_agents(self, members: Sequence[Member], reader: Reader, found: _Found, *, with_locals: bool) -> None:
        bound = (_LOCALS_SECONDS if with_locals else _SECONDS) + _SECONDS_EACH * len(members)

        async def one(number: int, member: Member) -> None:
            try:
                answer = await member.ask("stacks", {"packed": True, "locals": with_locals}, timeout=bound)
                threads = reader.read(answer)
                variables = _variables(answer.get("locals") or ())
            except (TimeoutError, asyncio.TimeoutError):
                found.late[number] = f"no answer within {bound:.1f} s"
            except (DapError, ValueError) as e:
                found.failed[member.label] = str(e)
            else:
                state = "paused" if member.stopped else ""
                _, who = found.alike.setdefault((id(threads), state), (threads, []))
                who.append(number)
                if variables:
                    found.variables[number] = variables

        await asyncio.gather(*(one(number, member) for number, member in enumerate(members)))

    async def _spy(self, members: Sequence[Member], found: _Found, *, is_wanted: bool) -> None:
        spy = Spy(self.hub.wanted.paths.in_client)
        wanted = [n for n, member in enumerate(members) if n in found.late or (is_wanted and member.is_live)]

        async def one(number: int, why_not: str) -> None:
            try:
                if not why_not:
                    found.spied[number] = await spy.threads(members[number].hello.pid)
                    found.late.pop(number, None)
            except DapError as e:
                why_not = str(e)
            if why_not and number in found.late:
                found.late[number] += f"; {why_not}"
            elif why_not:
                found.failed[members[number].label] = f"no native frames: {why_not}"

        await asyncio.gather(*(one(n, _why_not(members[n], at)) for at, n in enumerate(wanted)))


def _why_not(member: Member, at: int) -> str:
    if not member.is_local:
        return "it runs on another host, where the hub's py-spy cannot look"
    return "" if at < _MAX_SPIED else f"native frames of at most {_MAX_SPIED} ranks are read at a time"


def _tree(members: Sequence[Member], found: _Found) -> Tree:
    tree = Tree()
    for (_, state), (threads, numbers) in found.alike.items():
        who = [number for number in numbers if number not in found.spied]
        for at, thread in enumerate(threads if who else ()):
            kept = {n: found.variables[n][at] for n in who if at in found.variables.get(n, ())}
            tree.add(who, thread, state, kept)
    for number, spied in found.spied.items():
        for thread, state in spied:
            tree.add([number], thread, "paused" if members[number].stopped else state)
    return tree


def _variables(raw: Any) -> dict[int, list[dict[str, str]]]:
    """Of each thread, by its number. Raises ``ValueError``."""
    try:
        return {
            int(at): [
                {"name": str(name)[:_MAX_TEXT], "text": str(text)[:_MAX_TEXT]} for name, text in names[:_MAX_NAMES]
            ]
            for at, names in raw
        }
    except TypeError as e:
        raise ValueError("its agent sent variables that cannot be read") from e
