"""Which session presents which member, and how child sessions are opened."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from rankscope.dap.messages import DapError

if TYPE_CHECKING:
    from rankscope.dap.channel import Channel
    from rankscope.hub.member import Member
    from rankscope.hub.settings import LaunchSettings

_log = logging.getLogger("rankscope.dap")
_OPEN_SECONDS = 15.0


class Sessions:
    """The child sessions of one root. Owns the tasks that ask the client for them.

    A session is named by its rank set: ``actor/2`` for one rank, ``actor/all`` for a group.
    """

    def __init__(self, channel: Channel, client: dict[str, Any], settings: LaunchSettings) -> None:
        self._channel = channel
        self._can_event = bool(client.get("supportsRankscopeChildren"))
        self._can_request = bool(client.get("supportsStartDebuggingRequest"))
        self._mode = settings.sessions if self._can_event or self._can_request else "single"
        self._max = settings.max_sessions
        self._by_group: set[str] = set()
        self._of_rank: dict[tuple[str, int], str] = {}
        self._asked: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def name_for(self, member: Member) -> str:
        """The session that is to present a member; empty for the root."""
        facts = member.facts
        if self._mode == "single" or facts.role not in ("rank", "child") or facts.rank is None:
            return ""
        place = (facts.group, facts.rank)
        if place not in self._of_rank:
            self._of_rank[place] = self._choose(*place, facts.world_size or 0)
        return self._of_rank[place]

    def _choose(self, group: str, rank: int, world_size: int) -> str:
        head = f"{group}/" if group else ""
        if self._mode == "auto":
            alone = sum(not name.endswith("all") for name in self._of_rank.values())
            if group in self._by_group or world_size > self._max or alone >= self._max:
                self._by_group.add(group)
                return f"{head}all"
        return f"{head}all" if self._mode == "perGroup" else f"{head}{rank}"

    def is_awaited(self, name: str) -> bool:
        """Whether the client has been asked for that session, not too long ago, so that the root holds back."""
        asked = self._asked.get(name)
        return asked is not None and asyncio.get_running_loop().time() - asked < _OPEN_SECONDS

    def open(self, name: str, label: str) -> bool:
        """Ask the client to open a session, once. Whether it was asked now."""
        if not name or name in self._asked:
            return False
        self._asked[name] = asyncio.get_running_loop().time()
        configuration = {"type": "rankscope", "request": "attach", "name": label, "session": {"ranks": name}}
        if self._can_event:
            self._channel.send_event("rankscope/startChild", {"configuration": configuration})
        else:
            task = asyncio.ensure_future(self._request(configuration))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return True

    async def _request(self, configuration: dict[str, Any]) -> None:
        arguments = {"request": "attach", "configuration": configuration}
        try:
            await self._channel.request("startDebugging", arguments, timeout=_OPEN_SECONDS)
        except (DapError, TimeoutError, asyncio.TimeoutError) as e:
            _log.warning("no session for %s: %s", configuration["name"], e)

    def close(self) -> None:
        """Stop asking."""
        for task in self._tasks:
            task.cancel()
