"""Why it is stuck: the answer of the hub's watch over collectives, on demand."""

from __future__ import annotations

from typing import Any

from rankscope.dap.front_base import FrontBase


class HangRequests(FrontBase):
    """What hangs by itself is told as a finding; see :mod:`rankscope.hub.hangs`."""

    async def do_rankscope_why_stuck(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """What waits for what now, however short: ``text`` (a page), ``findings`` (a sentence each) and ``groups``.

        A group is one hang: ``{text, isDeadlock, mismatch, seconds, world, stalls}``; a stall ``{group, desc, op, seq,
        peer, waiting, missing, variants}``, whose members are ids. Answers within three seconds.
        """
        del arguments
        return await self.hub.fleet.hangs.why()
