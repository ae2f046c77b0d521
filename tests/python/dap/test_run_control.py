"""Many ranks at once: who is meant, lock-step, and run to cursor."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rankscope.dap.messages import DapError
from rankscope.hub import holds, run_control
from support.fake_ranks import FakeHub, FakeMember
from support.rank_groups import TRAIN, control, described, join, run, stops_of

# --- who is meant ---------------------------------------------------------------------------------


def test_scopes_and_sets() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single", rankSets={"edges": "actor/0,2"})
            actors, critics = await join(hub, 3), await join(hub, 2, "critic")
            assert (await control(root, "pause", scope="group", member=critics[1].id))["done"] == [
                "critic 0",
                "critic 1",
            ]
            assert (await control(root, "pause", ranks="edges"))["done"] == ["actor 0", "actor 2"]
            assert (await control(root, "next", scope="stopped"))["done"] == [
                "actor 0",
                "actor 2",
                "critic 0",
                "critic 1",
            ]
            assert (await control(root, "continue", members=[actors[2].id]))["done"] == ["actor 2"]
            assert (await control(root, "continue"))["done"] == ["actor 0", "critic 0", "critic 1"]

    run(work())


def test_what_a_set_names_that_is_not_there_is_said() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            await join(hub, 2)
            answer = await control(root, "pause", ranks="0,5-6,critic/all,local:7")
            assert (answer["done"], answer["absent"]) == (["actor 0"], ["5", "6", "critic/all", "local:7"])
            assert "not in the job: 5, 6, critic/all, local:7" in answer["message"]
            with pytest.raises(DapError, match="No rank that runs is in '7'"):
                await control(root, "pause", ranks="7")

    run(work())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"action": "jump"}, "'jump' is none of"),
        ({"action": "pause", "scope": "some"}, "'some' is none of"),
        ({"action": "pause", "ranks": "0-"}, "a number is missing"),
        ({"action": "pause", "timeout": "soon"}, "no number of seconds"),
        ({"action": "runToCursor"}, "a path and a line are missing"),
        ({"action": "pause", "scope": "group", "member": "nobody"}, "run that is over"),
    ],
)
def test_bad_requests(arguments: dict[str, Any], says: str) -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            await join(hub, 1)
            with pytest.raises(DapError, match=f"(?i){says}"):
                await root.request("rankscope/control", arguments)

    run(work())


# --- lock-step ------------------------------------------------------------------------------------


def test_who_does_not_arrive_is_pending_and_arrives_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_control, "_ARRIVE_SECONDS", 0.05)
    monkeypatch.setattr(holds, "SHOWN_SECONDS", 0.05)

    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session({TRAIN: [{"line": 10}]}, sessions="single", __extension={"version": "1"})
            zero, one, two = await join(hub, 3)
            hub.fleet.hangs.waits_for = lambda _: [two]  # type: ignore[assignment, list-item]
            await control(root, "pause")
            zero.is_blocked = True
            answer = await control(root, "next", ranks="0-1")
            assert answer["done"] == [one.label]
            pending = {"label": zero.label, "member": zero.id, "call": "all_reduce", "waitsFor": [two.label]}
            assert answer["pending"] == [pending]
            assert "actor 0 in all_reduce, waits for actor 2" in answer["message"]
            await root.wait_for("rankscope/ranksChanged", lambda body: body["members"][0]["pending"])
            told = await described(root, zero)
            assert (told["state"], told["pending"]) == ("running", {"action": "next", "waitsFor": [two.label]})
            zero.stop("step")
            assert (await described(root, zero))["pending"] is None

    run(work())


def test_a_pause_of_a_blocked_rank_is_pending_and_can_be_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_control, "_ARRIVE_SECONDS", 0.05)
    monkeypatch.setattr(holds, "SHOWN_SECONDS", 0.05)

    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            zero, one = await join(hub, 2)
            zero.is_blocked = True
            answer = await control(root, "pause")
            assert (answer["done"], [p["label"] for p in answer["pending"]]) == ([one.label], [zero.label])
            assert (await described(root, zero))["pending"]["action"] == "pause"
            assert (await control(root, "continue", ranks="0"))["done"] == [zero.label]
            assert (await described(root, zero))["pending"] is None

    run(work())


@pytest.mark.parametrize("is_taken_back", [True, False])
def test_one_that_arms_slowly_is_late_and_pauses_then_unless_that_was_taken_back(*, is_taken_back: bool) -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            (zero,) = await join(hub, 1)
            may_arm = asyncio.Event()
            own = zero.arm

            async def arm(why: str) -> None:
                await may_arm.wait()
                await own(why)

            zero.arm = arm  # type: ignore[method-assign]
            assert (await control(root, "pause", timeout=0.05))["late"] == [zero.label]
            if is_taken_back:
                assert (await control(root, "continue"))["done"] == [zero.label]
            may_arm.set()
            await root.until(lambda: zero.is_armed and (is_taken_back or zero.stopped), "it to be armed, or paused")
            assert bool(zero.stopped) != is_taken_back

    run(work())


def test_one_that_ends_meanwhile_has_failed() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            zero, one = await join(hub, 2)
            await control(root, "pause")
            zero.is_blocked = True
            stepping = asyncio.ensure_future(control(root, "next"))
            await root.wait_for("continued", lambda body: body["threadId"] in hub.fronts[0].ids.threads.of(zero.id))
            hub.fleet.leave(zero)
            answer = await stepping
            assert (answer["done"], answer["failed"]) == ([one.label], {zero.label: f"{zero.label} has ended"})

    run(work())


def test_the_member_that_is_looked_at_keeps_the_focus() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            await join(hub, 3)
            await control(root, "pause")
            two = hub.fleet.select(None)[2]
            root.events.clear()
            await control(root, "next", focus=two.id)
            focusing = [body["threadId"] for body in stops_of(root) if "preserveFocusHint" not in body]
            assert focusing == hub.fronts[0].ids.threads.of(two.id)[:1]

    run(work())


# --- run to cursor --------------------------------------------------------------------------------


def test_run_to_cursor_sets_a_line_for_those_ranks_until_they_stop() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session({TRAIN: [{"line": 10}]}, sessions="single", __extension={"version": "1"})
            zero, one, two = await join(hub, 3)
            await control(root, "pause", ranks="0-1")
            running = asyncio.ensure_future(control(root, "runToCursor", ranks="0-1", path=TRAIN, line=20))
            await root.until(lambda: not zero.stopped and not one.stopped, "both to run")
            assert [point["line"] for point in zero.lines[TRAIN]] == [10, 20]
            assert [point["line"] for point in two.lines[TRAIN]] == [10]
            zero.hit(TRAIN, 20)
            one.hit(TRAIN, 10)  # another breakpoint comes first: that ends it as well
            assert (await running)["done"] == [zero.label, one.label]
            assert stops_of(root)[-1]["hitBreakpointIds"]
            for member in (zero, one):
                await until_lines(member, [10])
            assert not hub.wanted.holds.lines
            assert [b["line"] for b in (await root.request("rankscope/breakpoints"))["breakpoints"]] == [10]

    run(work())


async def until_lines(member: FakeMember, lines: list[int]) -> None:
    while [point["line"] for point in member.lines[TRAIN]] != lines:
        await asyncio.sleep(0)


def test_run_to_a_line_without_code_is_refused() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            zero, one = await join(hub, 2)
            await control(root, "pause")
            zero.refused_lines = {20}
            running = asyncio.ensure_future(control(root, "runToCursor", path=TRAIN, line=20))
            await root.until(lambda: not one.stopped, "the other one to run")
            one.hit(TRAIN, 20)
            answer = await running
            assert answer["failed"] == {zero.label: "Breakpoint added to invalid line."}
            assert (answer["done"], bool(zero.stopped)) == ([one.label], True)

    run(work())
