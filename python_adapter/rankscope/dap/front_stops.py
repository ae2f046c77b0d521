"""How a stop is told to an editor: whether it takes the focus, and what it is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rankscope.dap.front_breakpoints import BreakpointRequests

if TYPE_CHECKING:
    from rankscope.hub.member import Member

HELD_AT_BARRIER = "held at a barrier"


class Stops(BreakpointRequests):
    """Tells stops, anew where another member is to have the focus. ``stops`` is the front's."""

    def tell_stop(self, member: Member, body: dict[str, Any], number: int, *, takes_focus: bool) -> None:
        """One ``stopped`` event: the thread that the client knows by ``number``."""
        told: dict[str, Any] = {
            "reason": body.get("reason", "pause"),
            "threadId": number,
            "allThreadsStopped": not self.presents_several,
        }
        if takes_focus:
            self.hub.fleet.control.looked_at = member.id
        else:
            told["preserveFocusHint"] = True
        told |= {name: body[name] for name in ("description", "text") if body.get(name)}
        if self.hub.fleet.control.barriers.holds(member):
            told["description"] = HELD_AT_BARRIER
        hit = self.hub.wanted.entries_of(member, body.get("hitBreakpointIds") or ())
        if hit:
            told["hitBreakpointIds"] = self.ids_of_entries(hit)
        self.channel.send_event("stopped", told)

    def barrier_complete(self, ids: Sequence[str]) -> None:
        """All have arrived: that is one stop, and the one that was looked at last takes the focus."""
        looked_at = self.hub.fleet.control.looked_at
        focus = looked_at if looked_at in ids else ids[0]
        for member_id in ids:
            member = self.hub.fleet.members.get(member_id)
            for local, number in self.stops.get(member_id, {}).items():
                if member is not None:
                    # VS Code shows why a thread stopped first, until it runs on
                    body = {"threadId": number, "allThreadsContinued": not self.presents_several}
                    self.channel.send_event("continued", body)
                    self.tell_stop(member, member.stopped.get(local, {}), number, takes_focus=member_id == focus)

    def take_focus(self, member: Member) -> None:
        """Tell a member's first stop again: the editor goes there."""
        local, number = next(iter(self.stops[member.id].items()))
        self.tell_stop(member, member.stopped.get(local, {}), number, takes_focus=True)

    def give_focus_up(self, member: Member) -> None:
        """Take a member's stopped threads away and bring them back: an editor keeps its focus on one that is there."""
        for local, number in self.stops.get(member.id, {}).items():
            self.channel.send_event("thread", {"reason": "exited", "threadId": number})
            self.channel.send_event("thread", {"reason": "started", "threadId": number})
            self.tell_stop(member, member.stopped.get(local, {}), number, takes_focus=False)
