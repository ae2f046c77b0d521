"""What a client hears of time-outs that run on while somebody is paused."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from rankscope.hub import pause_limits
from support.dap_client import Session
from support.fake_ranks import FakeHub

TRAIN = "/code/train.py"
LINE = {TRAIN: [{"line": 10}]}
OPTION = "torchrun --rdzv-conf join_timeout=…"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pause_limits, "_PERIOD_SECONDS", 0.02)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 20))


def limit(what: str, left: float | None, option: str = "") -> dict[str, Any]:
    return {"what": what, "seconds": 60.0, "left": left, "option": option}


async def limits_of(root: Session) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await root.request("rankscope/ranks")).get("limits", [])
    return found


async def told(root: Session, is_it: Any) -> dict[str, Any]:
    """The last ``ranksChanged``, as soon as its limits are as wished."""

    def last() -> dict[str, Any]:
        bodies = [body for event, body in root.events if event == "rankscope/ranksChanged"]
        return bodies[-1] if bodies else {}

    await root.until(lambda: last() and is_it(last().get("limits", [])), "limits as wished")
    return last()


def warnings(root: Session) -> list[str]:
    """What was said about time-outs."""
    outputs = [body["output"] for event, body in root.events if event == "output"]
    return [text for text in outputs if "(paused: " in text]


def test_nobody_is_asked_while_nobody_is_paused() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(LINE)
            driver, rank = await hub.fleet.join_driver(), await hub.fleet.join_rank(0, 1)
            driver.limits = [limit("ray.get(timeout=60)", 50)]
            assert await limits_of(root) == []
            rank.hit(TRAIN, 10)
            body = await told(root, bool)
            assert 0 <= body["pausedSeconds"] < 20
            assert body["limitsLeftOut"] == 0
            rank._go()
            await told(root, lambda limits: not limits)
            driver.silent.add("limits")  # would be asked in vain
            assert await limits_of(root) == []
            assert hub.limits._task is None or hub.limits._paused() == []

    run(work())


def test_limits_are_told_with_the_time_left_the_soonest_first() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(LINE)
            driver, zero, one = (
                await hub.fleet.join_driver(),
                await hub.fleet.join_rank(0, 2),
                await hub.fleet.join_rank(1, 2),
            )
            driver.limits = [limit("ray.get(timeout=600)", 500, OPTION), limit("store.wait(timeout=60)", None)]
            one.limits = [limit("ray.get(timeout=60)", 50)]
            zero.hit(TRAIN, 10)
            body = await told(root, lambda limits: len(limits) == 3)
            assert [(each["label"], each["what"], each["canRaise"]) for each in body["limits"]] == [
                ("actor 1", "ray.get(timeout=60)", False),
                ("driver train.py", "ray.get(timeout=600)", True),
                ("driver train.py", "store.wait(timeout=60)", False),
            ]
            first, second, third = body["limits"]
            assert first["member"] == one.id
            assert 40 < first["secondsLeft"] <= 50
            assert first["text"].startswith("ray.get(timeout=60) of actor 1 ends in ")
            assert second["text"] == f"ray.get(timeout=600) of driver train.py ends in 9 min (to raise it: {OPTION})"
            assert third["secondsLeft"] is None
            assert third["text"] == "store.wait(timeout=60) of driver train.py may run out, nobody knows when"
            assert warnings(root) == []

    run(work())


def test_a_deadline_that_stays_is_told_once_and_one_that_moves_again() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(LINE)
            rank, other = await hub.fleet.join_rank(0, 2), await hub.fleet.join_rank(1, 2)
            other.limits = [limit("ray.get(timeout=60)", 50)]
            rank.hit(TRAIN, 10)
            await told(root, bool)
            rounds = [0]
            own = other.ask

            async def ask(what: str, arguments: dict[str, Any], *, timeout: float = 3.0) -> dict[str, Any]:
                rounds[0] += what == "limits"
                return await own(what, arguments, timeout=timeout)

            other.ask = ask  # type: ignore[method-assign]
            before = len([event for event, _ in root.events if event == "rankscope/ranksChanged"])
            await root.until(lambda: rounds[0] >= 5, "five rounds")
            assert len([event for event, _ in root.events if event == "rankscope/ranksChanged"]) == before
            other.limits = [limit("ray.get(timeout=60)", 60)]
            await told(root, lambda limits: limits and limits[0]["secondsLeft"] > 55)

    run(work())


def test_one_that_is_nearly_over_is_warned_of_once_and_then_lamented_once() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(LINE)
            rank, driver = await hub.fleet.join_rank(0, 1), await hub.fleet.join_driver()
            driver.limits = [limit("ray.get(timeout=60)", 9)]
            rank.hit(TRAIN, 10)
            await told(root, bool)
            driver.limits = [limit("ray.get(timeout=60)", 0)]
            await told(root, lambda limits: limits and limits[0]["secondsLeft"] == 0)
            driver.limits = []
            body = await told(root, lambda limits: limits and limits[0]["isOver"])
            assert body["limits"][0]["text"] == "ray.get(timeout=60) of driver train.py has run out"
            assert body["limits"][0]["secondsLeft"] == 0
            await root.until(lambda: len(warnings(root)) == 2, "both sentences")
            warned, lamented = warnings(root)
            assert "ray.get(timeout=60) of driver train.py ends in 9 s (paused: actor 0)" in warned
            assert "ray.get(timeout=60) of driver train.py ran out (paused: actor 0)" in lamented

    run(work())


def test_one_that_ends_a_process_says_so() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(LINE)
            rank, other = await hub.fleet.join_rank(0, 2), await hub.fleet.join_rank(1, 2)
            other.limits = [limit("store.get(timeout=60)", 0)]
            rank.hit(TRAIN, 10)
            await told(root, bool)
            hub.fleet.leave(other, "DistStoreError: wait timeout")
            await root.until(lambda: len(warnings(root)) == 2, "what came of it")
            assert "ran out (paused: actor 0): it has crashed: DistStoreError: wait timeout" in warnings(root)[1]

    run(work())


def test_what_was_over_as_the_last_one_went_on_is_said_and_what_would_have_been_later_is_not() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(LINE)
            rank, other = await hub.fleet.join_rank(0, 2), await hub.fleet.join_rank(1, 2)
            other.limits = [limit("ray.get(timeout=60)", 0), limit("ray.get(timeout=61)", 1)]
            rank.hit(TRAIN, 10)
            await told(root, lambda limits: len(limits) == 2)
            other.limits = []
            rank._go()
            await told(root, lambda limits: not limits)
            assert [text for text in warnings(root) if "ran out" in text] == [
                "[rankscope] ray.get(timeout=60) of actor 1 ran out (paused: actor 0)\n"
            ]

    run(work())


def test_what_was_answered_in_time_is_forgotten() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(LINE)
            rank, other = await hub.fleet.join_rank(0, 2), await hub.fleet.join_rank(1, 2)
            other.limits = [limit("ray.get(timeout=60)", 50)]
            rank.hit(TRAIN, 10)
            await told(root, bool)
            other.limits = []
            await told(root, lambda limits: not limits)
            assert warnings(root) == []

    run(work())


def test_a_poll_that_begins_again_and_again_is_spoken_of_once() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(LINE)
            rank, other = await hub.fleet.join_rank(0, 2), await hub.fleet.join_rank(1, 2)
            for _ in range(4):
                other.limits = [limit("ray.wait(timeout=5)", 0)]
                if not rank.stopped:
                    rank.hit(TRAIN, 10)
                await told(root, lambda limits: limits and limits[0]["secondsLeft"] < 1)
                other.limits = [limit("ray.wait(timeout=5)", 5)]
                await told(root, lambda limits: limits and limits[0]["secondsLeft"] > 4)
            assert len(warnings(root)) == 2

    run(work())


def test_one_that_answers_garbage_harms_nobody() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(LINE)
            rank, other = await hub.fleet.join_rank(0, 2), await hub.fleet.join_rank(1, 2)
            nan, inf = float("nan"), float("inf")
            other.limits = [7, {}, limit("a", nan), limit("b", inf), {"what": "x" * 10**6, "left": "y"}]  # type: ignore[list-item]
            rank.limits = 7  # type: ignore[assignment]
            rank.hit(TRAIN, 10)
            body = await told(root, lambda limits: len(limits) == 4)
            assert all(each["secondsLeft"] is None and len(each["what"]) <= 200 for each in body["limits"])
            rank.limits = [limit("ray.get(timeout=60)", 50)]
            await told(root, lambda limits: len(limits) == 5)

    run(work())


def test_who_does_not_answer_keeps_what_was_known_and_the_list_has_a_bound() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(LINE)
            rank, other = await hub.fleet.join_rank(0, 2), await hub.fleet.join_rank(1, 2)
            other.limits = [limit(f"ray.get(timeout={number})", 100 + number) for number in range(130)]
            rank.hit(TRAIN, 10)
            body = await told(root, bool)
            assert len(body["limits"]) == 100
            assert body["limitsLeftOut"] == 30
            other.silent.add("limits")
            rank.limits = [limit("ray.get(timeout=7)", 70)]
            body = await told(root, lambda limits: limits and limits[0]["label"] == "actor 0")
            assert body["limitsLeftOut"] == 31

    run(work())
