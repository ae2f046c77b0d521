"""Hangs as an editor hears of them, from what fake ranks tell of their collectives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from rankscope.wire.messages import Waits
from support.dap_client import Session
from support.fake_ranks import FakeHub, FakeMember

pytestmark = pytest.mark.core

EXTENSION: dict[str, Any] = {"__extension": {"version": "test"}}


def entry(seq: int = 7, op: str = "all_reduce", age: Any = 60.0, **more: Any) -> dict[str, Any]:
    """What an agent tells of one collective."""
    group = {"group": "0", "desc": "default_pg", "ranks": "0-3"}
    return {
        **group,
        "op": op,
        "seq": seq,
        "sizes": [[4]],
        "dtypes": ["float32"],
        "peer": None,
        "tag": 0,
        "age": age,
        **more,
    }


def with_ranks(work: Callable[[FakeHub, Session, list[FakeMember]], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        async with FakeHub() as hub:
            session = await hub.root_session(**EXTENSION)
            await work(hub, session, [await hub.fleet.join_rank(rank) for rank in range(4)])
            hub.fleet.hangs.close()

    asyncio.run(asyncio.wait_for(whole(), 30))


def tell(hub: FakeHub, member: FakeMember, *waits: dict[str, Any]) -> None:
    hub.fleet.hangs.handle(member, Waits("w", int(member.facts.rank or 0), list(waits)))  # type: ignore[arg-type]


async def stuck(session: Session) -> dict[str, str]:
    members = (await session.request("rankscope/ranks"))["members"]
    return {member["label"]: member["stuck"] for member in members if member["stuck"]}


def test_a_hang_is_a_finding_and_marks_both_sides_until_it_ends() -> None:
    async def work(hub: FakeHub, session: Session, ranks: list[FakeMember]) -> None:
        ranks[2].top = {"name": "load", "path": "/code/data.py", "line": 3, "call": ""}
        for rank in ranks:
            tell(hub, rank, *([entry()] if rank is not ranks[2] else []))
        found = await session.wait_for("rankscope/finding")
        assert found["text"] == (
            "actor 0,1,3 wait in all_reduce (#7 of default_pg) for actor 2, which is running at data.py:3 in load"
        )
        assert (found["kind"], found["path"], found["line"], found["id"]) == ("hang", "/code/data.py", 3, "hang-1")
        assert await stuck(session) == {
            "actor 2": "3 wait for it in all_reduce (#7 of default_pg)",
            **{f"actor {n}": "waits for actor 2 in all_reduce (#7 of default_pg)" for n in (0, 1, 3)},
        }
        assert hub.fleet.hangs.waits_for(ranks[0]) == [ranks[2]]  # type: ignore[arg-type,comparison-overlap]
        assert hub.fleet.hangs.waits_for(ranks[2]) == []  # type: ignore[arg-type]
        for rank in ranks:
            tell(hub, rank)
        while await stuck(session):
            await asyncio.sleep(0.01)

    with_ranks(work)


def test_why_is_answered_before_it_is_a_hang_and_when_nothing_hangs() -> None:
    async def work(hub: FakeHub, session: Session, ranks: list[FakeMember]) -> None:
        answer = await session.request("rankscope/whyStuck")
        assert answer == {
            "text": "Nothing hangs: no rank waits in a collective, a send or a receive.",
            "groups": [],
            "findings": [],
        }
        for rank in ranks[:3]:
            tell(hub, rank, entry(age=0.5))
        answer = await session.request("rankscope/whyStuck")
        [sentence] = answer["findings"]
        assert sentence.startswith(
            "actor 0-2 wait in all_reduce (#7 of default_pg) for rank 3 (which RankScope does not"
        )
        [group] = answer["groups"]
        assert group["stalls"][0]["waiting"] == [rank.id for rank in ranks[:3]]
        assert "/code/train.py:9" in answer["text"]
        assert not [event for event, _ in session.events if event == "rankscope/finding"]

    with_ranks(work)


def test_a_member_that_tells_rubbish_is_told_of_once_and_harms_nobody() -> None:
    async def work(hub: FakeHub, session: Session, ranks: list[FakeMember]) -> None:
        rubbish: list[dict[str, Any]] = [{"group": 3}, entry(ranks="0-99999999"), entry(age="x"), entry(sizes=[["a"]])]
        for one in rubbish:
            tell(hub, ranks[0], one)
        hub.fleet.hangs.handle(ranks[0], Waits("w", -5, []))  # type: ignore[arg-type]
        for rank in ranks[1:3]:
            tell(hub, rank, entry())
        found = await session.wait_for("rankscope/finding")
        assert "actor 1 and actor 2" in found["text"] or "actor 1,2" in found["text"]
        notes = [str(body["output"]) for event, body in session.events if event == "output"]
        assert len([note for note in notes if "cannot be read" in note or "rank -5" in note]) == 1

    with_ranks(work)


def test_members_that_do_not_answer_are_told_of_all_the_same() -> None:
    async def work(hub: FakeHub, session: Session, ranks: list[FakeMember]) -> None:
        ranks[2].silent = {"top", "stacks", "collectives"}
        for rank in ranks:
            tell(hub, rank, *([entry()] if rank is not ranks[2] else []))
        found = await session.wait_for("rankscope/finding")
        assert found["text"].endswith("for actor 2, which is running, and does not answer")

    with_ranks(work)


def test_many_hangs_at_once_are_counted() -> None:
    async def work(hub: FakeHub, session: Session, ranks: list[FakeMember]) -> None:
        alone = [entry(group=f"g{at}", desc="", ranks="0,2") for at in range(40)]
        tell(hub, ranks[2])
        tell(hub, ranks[0], *alone)
        while not any(event == "output" and "24 more hangs" in str(body["output"]) for event, body in session.events):
            await asyncio.sleep(0.01)
        assert len([event for event, _ in session.events if event == "rankscope/finding"]) == 16

    with_ranks(work)
