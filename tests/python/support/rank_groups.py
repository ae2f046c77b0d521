"""A group of fake ranks on a fake hub, told together who runs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from support.dap_client import Session
from support.fake_ranks import FakeHub, FakeMember

TRAIN = "/code/train.py"


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 20))


async def join(hub: FakeHub, size: int, group: str = "actor") -> list[FakeMember]:
    return [await hub.fleet.join_rank(rank, size, group) for rank in range(size)]


async def control(root: Session, action: str, **whom: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await root.request("rankscope/control", {"action": action, **whom})
    return answer


async def described(root: Session, member: FakeMember) -> dict[str, Any]:
    members = (await root.request("rankscope/ranks"))["members"]
    return next(one for one in members if one["id"] == member.id)


def stops_of(session: Session) -> list[dict[str, Any]]:
    return [body for event, body in session.events if event == "stopped"]
