"""How far the ranks have joined, as DAP progress of the root session."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankscope.dap.channel import Channel
    from rankscope.hub.fleet import Fleet

_ID = "rankscope-join"


class JoinProgress:
    """Shown from the first rank that says how many there are until they are all there."""

    def __init__(self, channel: Channel, *, is_supported: bool) -> None:
        self._channel = channel
        self._is_over = not is_supported
        self._told = ""

    def update(self, fleet: Fleet) -> None:
        """Count anew."""
        if self._is_over:
            return
        ranks = [member.facts for member in fleet.select(None) if member.facts.role == "rank"]
        worlds: dict[str, int] = {}
        for facts in ranks:
            worlds[facts.group] = max(worlds.get(facts.group, 0), facts.world_size or 0)
        expected = sum(worlds.values())
        joined = sum(1 for facts in ranks if worlds[facts.group])
        if not expected:
            return
        text = f"{joined} of {expected} ranks joined"
        if joined >= expected:
            self.end(text)
        elif not self._told:
            body = {"progressId": _ID, "title": "RankScope", "message": text, "cancellable": False}
            self._channel.send_event("progressStart", {**body, "percentage": 100 * joined // expected})
            self._told = text
        elif text != self._told:
            body = {"progressId": _ID, "message": text, "percentage": 100 * joined // expected}
            self._channel.send_event("progressUpdate", body)
            self._told = text

    def end(self, text: str = "") -> None:
        """No longer of interest; idempotent."""
        if self._told and not self._is_over:
            self._channel.send_event("progressEnd", {"progressId": _ID, **({"message": text} if text else {})})
        self._is_over = self._is_over or bool(self._told)
