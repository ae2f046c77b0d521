"""How far the ranks have joined, as DAP progress of the root session."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankscope.dap.channel import Channel
    from rankscope.hub.fleet import Fleet

_SECONDS_EACH = 0.0002
_numbers = itertools.count(1)


class JoinProgress:
    """Shown from the first sign of how many ranks there are to be until they are all there. Owns a timer till then.

    That sign is a rank that knows its world's size, or a Ray actor that somebody has asked for, so a plain
    script never shows any. The client may cancel it by its ``id``.
    """

    def __init__(self, channel: Channel, *, is_supported: bool) -> None:
        self.id = f"rankscope-join-{next(_numbers)}"
        self._channel = channel
        self._is_over = not is_supported
        self._told = ""
        self._not_before = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def update(self, fleet: Fleet) -> None:
        """Count anew; of many members not at each that joins."""
        if self._is_over or self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        if loop.time() < self._not_before:
            self._timer = loop.call_at(self._not_before, self._again, fleet)
            return
        self._not_before = loop.time() + _SECONDS_EACH * len(fleet.members)
        self._count(fleet)

    def _again(self, fleet: Fleet) -> None:
        self._timer = None
        self.update(fleet)

    def _count(self, fleet: Fleet) -> None:
        ranks = [member.facts for member in fleet.select(None) if member.facts.role == "rank"]
        worlds: dict[str, int] = {}
        for facts in ranks:
            worlds[facts.group] = max(worlds.get(facts.group, 0), facts.world_size or 0)
        there = Counter(facts.group for facts in ranks)
        missing = sum(max(0, size - there[group]) for group, size in worlds.items() if size)
        missing = max(missing, fleet.missing_actors())
        if not missing and not self._told and not any(worlds.values()):
            return
        expected = len(ranks) + missing
        text = f"{len(ranks)} of {expected} ranks joined" if ranks else "waiting for ranks"
        if not missing:
            self.end(text)
        elif not self._told:
            body = {"progressId": self.id, "title": "RankScope", "message": text, "cancellable": True}
            self._channel.send_event("progressStart", {**body, "percentage": 100 * len(ranks) // expected})
            self._told = text
        elif text != self._told:
            body = {"progressId": self.id, "message": text, "percentage": 100 * len(ranks) // expected}
            self._channel.send_event("progressUpdate", body)
            self._told = text

    def end(self, text: str = "") -> None:
        """No longer of interest; idempotent."""
        if self._told and not self._is_over:
            self._channel.send_event("progressEnd", {"progressId": self.id, **({"message": text} if text else {})})
        self._is_over = self._is_over or bool(self._told)
        if self._is_over and self._timer is not None:
            self._timer.cancel()
