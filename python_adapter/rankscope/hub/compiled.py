"""Breakpoints on lines that run compiled in some member, where they cannot stop: the members are asked now and then.

A function may be compiled long after a breakpoint was bound in it, and nothing tells of that.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rankscope.dap.messages import DapError

if TYPE_CHECKING:
    from rankscope.hub.breakpoints import Wanted
    from rankscope.hub.member import Member

EVERY_SECONDS = 3.0
_ASK_SECONDS = 2.0


async def watch(wanted: Wanted) -> None:
    """Ask every armed member about its bound lines; runs until cancelled."""
    while True:
        await asyncio.sleep(EVERY_SECONDS)
        fleet = wanted.fleet
        if fleet is not None:
            await asyncio.gather(*(_look(wanted, member) for member in fleet.select(None) if member.is_armed))


async def _look(wanted: Wanted, member: Member) -> None:
    places = wanted.bound_lines(member)
    if not places:
        return
    try:
        answer = await member.ask("compiled", {"places": places}, timeout=_ASK_SECONDS)
    except (DapError, TimeoutError, asyncio.TimeoutError):
        return  # it is asked again
    if wanted.standing.note_compiled(member, {int(entry) for entry in answer.get("compiled") or ()}):
        wanted.tell()
