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
# Under "auto", the largest group whose ranks get a session each.
_PER_RANK = 16


class Sessions:
    """The child sessions of one root. Owns the tasks that ask the client for them.

    A session is named by its rank set: ``actor/2`` for one rank, ``actor/all`` for a group.
    ``max_sessions`` of them open by themselves; the others when somebody asks (:meth:`reopen`).
    """

    def __init__(self, channel: Channel, settings: LaunchSettings, *, by_event: bool, by_request: bool) -> None:
        self._channel = channel
        self._by_event = by_event
        self._mode = settings.sessions if by_event or by_request else "single"
        self._max = settings.max_sessions
        self._by_group: set[str] = set()
        self._of_rank: dict[tuple[str, int], str] = {}
        self._names: set[str] = set()
        self._opening: set[str] = set()
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
            self._names.add(self._of_rank[place])
        return self._of_rank[place]

    def _choose(self, group: str, rank: int, world_size: int) -> str:
        head = f"{group}/" if group else ""
        is_large = group in self._by_group or world_size > _PER_RANK
        if self._mode == "auto" and (is_large or self._is_full(group)):
            self._by_group.add(group)
            return f"{head}all"
        return f"{head}all" if self._mode == "perGroup" else f"{head}{rank}"

    def _is_full(self, group: str) -> bool:
        return sum(of == group for of, _ in self._of_rank) >= _PER_RANK

    def knows(self, name: str) -> bool:
        """Whether that is the session of some member."""
        return name in self._names

    def is_awaited(self, name: str) -> bool:
        """Whether the client has been asked for that session, not too long ago, so that the root holds back."""
        asked = self._asked.get(name)
        return asked is not None and asyncio.get_running_loop().time() - asked < _OPEN_SECONDS

    def is_beyond_cap(self, name: str) -> bool:
        """Whether nobody has asked for that session, and it does not open by itself."""
        return name not in self._asked and len(self._opening) >= self._max

    def open(self, name: str, label: str) -> bool:
        """Ask the client to open a session, once, unless that is one too many. Whether it was asked now."""
        if not name or name in self._asked or self.is_beyond_cap(name):
            return False
        self._opening.add(name)
        self.reopen(name, label)
        return True

    def reopen(self, name: str, label: str) -> None:
        """Ask for a session that was not opened, or that was closed, because a person wants it."""
        self._asked[name] = asyncio.get_running_loop().time()
        configuration = {"type": "rankscope", "request": "attach", "name": label, "session": {"ranks": name}}
        if self._by_event:
            self._channel.send_event("rankscope/startChild", {"configuration": configuration})
        else:
            task = asyncio.ensure_future(self._request(configuration))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

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
