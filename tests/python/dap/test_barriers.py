"""Ranks that are stopped together: held at a barrier, or paused since one of their group has stopped."""

from __future__ import annotations

from typing import Any

import pytest

from rankscope.hub import run_control
from support.fake_ranks import FakeHub
from support.rank_groups import TRAIN, control, described, join, run, stops_of

BARRIER = {TRAIN: [{"line": 10, "condition": "True  # @all barrier"}]}


# --- barriers -------------------------------------------------------------------------------------


def test_a_barrier_holds_until_all_are_there_and_is_one_stop() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(BARRIER, sessions="single")
            zero, one, two = await join(hub, 3)
            one.hit(TRAIN, 10)
            assert (await described(root, one))["barrier"] == [zero.label, two.label]
            (held,) = stops_of(root)
            assert (held["description"], held["preserveFocusHint"]) == ("held at a barrier", True)
            two.hit(TRAIN, 10)
            zero.hit(TRAIN, 10)
            await root.wait_for("stopped", lambda body: "preserveFocusHint" not in body)
            focusing = [body for body in stops_of(root) if "preserveFocusHint" not in body]
            assert [body["threadId"] for body in focusing] == hub.fronts[0].ids.threads.of(zero.id)[:1]
            assert "description" not in focusing[0]
            assert [(await described(root, member))["barrier"] for member in (zero, one, two)] == [None] * 3
            await control(root, "continue")
            one.hit(TRAIN, 10)  # the next round
            assert (await described(root, one))["barrier"] == [zero.label, two.label]

    run(work())


def test_a_barrier_does_not_wait_for_who_has_ended_and_waits_for_who_is_to_join() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(BARRIER, sessions="single")
            zero, one = [await hub.fleet.join_rank(rank, 3) for rank in range(2)]
            zero.hit(TRAIN, 10)
            assert (await described(root, zero))["barrier"] == [one.label, "actor 2"]
            hub.fleet.leave(one)
            assert (await described(root, zero))["barrier"] == ["actor 2"]
            await root.wait_for("output", lambda body: "no longer waits for it: it has exited" in body["output"])
            two = await hub.fleet.join_rank(2, 3)
            hub.fleet.leave(two)
            assert (await described(root, zero))["barrier"] is None
            await root.wait_for("stopped", lambda body: "preserveFocusHint" not in body)

    run(work())


@pytest.mark.parametrize(
    ("condition", "awaited"),
    [
        ("# @all barrier", ["actor 1"]),
        ("# @0-1 barrier", ["actor 1"]),
        ("# @actor/0,critic/0 barrier", ["critic 0"]),
        ("# @actor/all,critic/all barrier", ["actor 1", "critic 0"]),
    ],
)
def test_groups_have_barriers_of_their_own_unless_the_set_names_them(condition: str, awaited: list[str]) -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session({TRAIN: [{"line": 10, "condition": condition}]}, sessions="single")
            zero, _ = await join(hub, 2)
            await join(hub, 1, "critic")
            zero.hit(TRAIN, 10)
            assert (await described(root, zero))["barrier"] == awaited

    run(work())


def test_a_barrier_lets_go_by_hand_by_time_and_when_it_is_taken_away() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(
                {TRAIN: [{"line": 10, "mode": "barrier"}]}, sessions="single", barrierTimeout=0.3
            )
            zero, _ = await join(hub, 2)
            zero.hit(TRAIN, 10)
            await control(root, "continue", scope="stopped")
            assert not hub.fleet.control.barriers.waits_for(zero)  # type: ignore[arg-type]
            zero.hit(TRAIN, 10)
            await root.wait_for("output", lambda body: "let go after 0.3 s; missing: actor 1" in body["output"])
            await root.until(lambda: not zero.stopped, "the held rank to run on")
            zero.hit(TRAIN, 10)
            await root.request("setBreakpoints", {"source": {"path": TRAIN}, "breakpoints": []})
            assert zero.stopped
            assert (await described(root, zero))["barrier"] is None

    run(work())


# --- stopping together ----------------------------------------------------------------------------


def test_when_one_stops_the_rest_of_its_group_is_paused_and_the_skew_is_told() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            lines = {TRAIN: [{"line": 10, "condition": "# @actor/0"}]}
            root = await hub.root_session(lines, sessions="single", stopTogether=True, __extension={"version": "1"})
            actors, critics = await join(hub, 3), await join(hub, 1, "critic")
            assert [member.is_armed for member in (*actors, *critics)] == [True, True, True, False]
            actors[0].hit(TRAIN, 10)
            await root.wait_for("output", lambda body: "3 of 3 ranks of actor stopped within" in body["output"])
            assert all(member.stopped for member in actors) and not critics[0].stopped
            skew = (await root.request("rankscope/ranks"))["skews"]["actor"]
            assert (skew["stopped"], skew["size"]) == (3, 3) and skew["milliseconds"] >= 0
            await control(root, "continue")
            assert (await root.request("rankscope/ranks"))["skews"] == {}

    run(work())


def test_who_steps_is_not_paused_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_control, "_ARRIVE_SECONDS", 0.05)

    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session({TRAIN: [{"line": 10}]}, sessions="single", stopTogether=True)
            zero, one = await join(hub, 2)
            await control(root, "pause")
            one.is_blocked = True
            one.asked.clear()
            await control(root, "next")
            assert (bool(zero.stopped), [name for name, _ in one.asked]) == (True, ["next"])

    run(work())


def test_one_that_stops_again_before_the_last_is_let_go_still_stops_them() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session({TRAIN: [{"line": 10}]}, sessions="single", stopTogether=True)
            zero, one = await join(hub, 2)
            await control(root, "pause")
            own = zero._on_continue

            def hits_at_once(arguments: dict[str, Any]) -> dict[str, Any]:
                answer = own(arguments)
                zero.hit(TRAIN, 10)
                return answer

            zero._on_continue = hits_at_once  # type: ignore[method-assign, assignment]
            await control(root, "continue")
            await root.until(lambda: zero.stopped and one.stopped, "both to be stopped again")

    run(work())


def test_the_one_stop_is_told_in_every_session_and_the_rank_looked_at_last_takes_the_focus() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            lines = {TRAIN: [{"line": 10, "condition": "# @all barrier"}, {"line": 9, "condition": "# @1"}]}
            await hub.root_session(lines, sessions="perRank")
            zero, one = await join(hub, 2)
            first, second = [await hub.child_session(f"actor/{rank}", lines) for rank in range(2)]
            zero.hit(TRAIN, 10)
            assert (await first.wait_for("stopped"))["description"] == "held at a barrier"
            one.hit(TRAIN, 9)  # who is held does not count as one to look at
            assert "preserveFocusHint" not in await second.wait_for("stopped")
            first.events.clear()
            second.events.clear()
            await second.request("continue", {"threadId": 1})
            one.hit(TRAIN, 10)
            again = await first.wait_for("stopped")
            assert ("description" in again, again["preserveFocusHint"]) == (False, True)
            await second.wait_for("stopped", lambda body: "preserveFocusHint" not in body)

    run(work())
