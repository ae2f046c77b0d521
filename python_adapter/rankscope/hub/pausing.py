"""When a pause counts: once the thread that runs the person's code stands.

debugpy tells a pause as soon as any thread has stopped. A main thread in a C call (a collective, a sleep) runs on
meanwhile, and debugpy says no word when it stops later, unless it is asked to pause again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from rankscope.dap.messages import DapError

if TYPE_CHECKING:
    from rankscope.hub.member import Member

_LOOKS = 3
_BETWEEN_SECONDS = 0.02
_THREADS_SECONDS = 1.0


async def confirmed(member: Member, body: dict[str, Any]) -> dict[str, Any] | None:
    """The ``stopped`` body with the thread of the person's code; ``None`` while that still runs, in a C call.

    Taken as it is where the agent or debugpy does not say.
    """
    for look in range(_LOOKS):
        if look:
            await asyncio.sleep(_BETWEEN_SECONDS)  # the other thread may be a line behind
        try:
            seen, answer = await asyncio.gather(member.look(), member.debug("threads", {}, timeout=_THREADS_SECONDS))
        except (DapError, TimeoutError, asyncio.TimeoutError):
            return body
        frame = seen.get("frame") or {}
        if frame.get("isSuspended", True):
            threads = answer.get("threads") or []
            own = [int(thread["id"]) for thread in threads if thread.get("name") == frame.get("thread")]
            return {**body, "threadId": own[0]} if own else body
    return None
