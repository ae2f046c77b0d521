"""The wanted table: shares, merged answers, late ranks, edits while the job runs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, cast

import pytest

from rankscope.hub.breakpoints import Wanted
from rankscope.hub.member import Member
from rankscope.hub.settings import LaunchSettings
from support.dap_client import Session
from support.fake_ranks import FakeHub

TRAIN = "/code/train.py"
RAISED_AT_0 = {"filterId": "raised", "condition": "# @0"}


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 20))


async def set_lines(session: Session, *breakpoints: dict[str, Any], path: str = TRAIN) -> list[dict[str, Any]]:
    body = await session.request("setBreakpoints", {"source": {"path": path}, "breakpoints": list(breakpoints)})
    return list(body["breakpoints"])


def test_shares_and_merged_answers() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            assert (await set_lines(root, {"line": 3}))[0]["message"] == "no rank that it concerns has joined yet"
            driver = await hub.fleet.join_driver()
            members = [await hub.fleet.join_rank(rank) for rank in range(3)]
            (everywhere, one, all_ranks) = await set_lines(
                root,
                {"line": 3},
                {"line": 4, "condition": "x > 1  # @actor/1"},
                {"line": 5, "mode": "all"},
            )
            assert everywhere["message"] == "4 of 4 joined, 1 pending"
            assert one == {"id": one["id"], "verified": True, "line": 4, "source": {"path": TRAIN}}
            assert all_ranks["message"] == "3 of 3 joined, 1 pending"
            assert [point["line"] for point in driver.lines[TRAIN]] == [3]
            assert [point["line"] for point in members[0].lines[TRAIN]] == [3, 5]
            assert members[1].lines[TRAIN][1]["condition"] == "(x > 1)"
            await hub.fleet.join_rank(3)
            event = await root.wait_for(
                "breakpoint", lambda b: b["breakpoint"]["id"] == all_ranks["id"] and "message" not in b["breakpoint"]
            )
            assert event["breakpoint"]["verified"]

    run(work())


@pytest.mark.parametrize(
    ("condition", "may"), [("", True), ("# @2", True), ("# @actor/0", True), ("# @local:1", True), ("# @driver", False)]
)
def test_idle_workers_are_prepared_when_what_they_become_may_need_it(condition: str, *, may: bool) -> None:
    async def work() -> None:
        wanted = Wanted()
        assert not wanted.may_arm_ranks()
        await wanted.set_lines(TRAIN, [{"line": 3, "condition": condition}])
        assert wanted.may_arm_ranks() is may
        await wanted.set_lines(TRAIN, [])
        await wanted.set_exceptions(["uncaught"], [])
        assert not wanted.may_arm_ranks()

    run(work())


def test_a_malformed_expression_never_reaches_a_member() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            member = await hub.fleet.join_rank(0)
            bad, log, hit, good = await set_lines(
                root,
                {"line": 1, "condition": "x ="},
                {"line": 2, "logMessage": "{x"},
                {"line": 3, "hitCondition": "x"},
                {"line": 4},
            )
            assert not bad["verified"] and "Condition 'x ='" in bad["message"]
            assert "is not closed" in log["message"] and "Hit count 'x'" in hit["message"]
            assert good["verified"]
            assert [point["line"] for point in member.lines[TRAIN]] == [4]

    run(work())


def test_a_line_without_code_says_so() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            member = await hub.fleet.join_rank(0, 1)
            member.refused_lines = {8}
            (refused,) = await set_lines(root, {"line": 8})
            assert not refused["verified"]
            assert refused["message"] == "0 of 1 joined; Breakpoint added to invalid line."

    run(work())


def test_a_burst_of_edits_ends_with_the_last() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            members = [await hub.fleet.join_rank(rank) for rank in range(4)]
            await asyncio.gather(*(set_lines(root, {"line": 1}, {"line": 2 + edit}) for edit in range(100)))
            for member in members:
                assert [point["line"] for point in member.lines[TRAIN]] == [1, 101]
            paths = [f"/code/{number}.py" for number in range(100)]
            await asyncio.gather(*(set_lines(root, {"line": 1}, path=path) for path in paths))
            for member in members:
                assert all([point["line"] for point in member.lines[path]] == [1] for path in paths)

    run(work())


def test_an_unchanged_breakpoint_keeps_its_id_and_so_its_hit_count() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            (first,) = await set_lines(root, {"line": 1, "hitCondition": "3"})
            same, _ = await set_lines(root, {"line": 1, "hitCondition": "3"}, {"line": 2})
            assert same["id"] == first["id"]

    run(work())


def test_only_those_concerned_are_armed_and_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankscope.hub.breakpoints.QUIET_SECONDS", 0.02)

    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            members = [await hub.fleet.join_rank(rank) for rank in range(3)]
            await set_lines(root, {"line": 1, "condition": "# @1"})
            assert [member.is_armed for member in members] == [False, True, False]
            members[1].hit(TRAIN, 1)
            await set_lines(root, {"line": 1, "condition": "# @2"})
            assert members[2].is_armed
            assert members[1].is_armed, "a stopped rank keeps its debugger"
            await root.request("rankscope/control", {"action": "continue"})
            await root.until(lambda: not members[1].is_armed, "disarm")
            assert members[2].is_armed

    run(work())


def test_an_unknown_rank_is_armed_and_tested_in_the_process() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single", rankSets={"heads": "0,4"})
            member = await hub.fleet.join_rank(0, is_final=False)
            await set_lines(root, {"line": 1, "condition": "x  # @heads"})
            condition = member.lines[TRAIN][0]["condition"]
            assert condition.endswith(".in_rank_set('0-0:1,4-4:1') and (x)")

    run(work())


def test_exception_filters() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            zero, one = await hub.fleet.join_rank(0, 2), await hub.fleet.join_rank(1, 2)
            await root.request("setExceptionBreakpoints", {"filters": ["uncaught"]})
            assert not any(member.is_armed for member in (zero, one))
            options = [{"filterId": "raised", "condition": "ValueError  # @1"}]
            await root.request("setExceptionBreakpoints", {"filters": ["uncaught"], "filterOptions": options})
            assert [member.is_armed for member in (zero, one)] == [False, True]
            raised = {
                "path": [{"names": ["Python Exceptions"]}, {"names": ["ValueError"]}],
                "breakMode": "always",
            }
            assert one.exceptions["exceptionOptions"] == [raised]  # what nothing catches, the agent itself sees
            body = await root.request(
                "setExceptionBreakpoints",
                {"filters": ["odd"], "filterOptions": [{"filterId": "raised", "condition": "x y"}]},
            )
            assert [point["verified"] for point in body["breakpoints"]] == [False, False]
            assert "'odd': it is none of" in body["breakpoints"][0]["message"]
            assert one.exceptions == {"filters": []}

    run(work())


def test_an_exception_filter_goes_by_the_provisional_rank_until_the_final_one_is_known() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            member = await hub.fleet.join_rank(1, 2, is_final=False)
            await root.request("setExceptionBreakpoints", {"filters": [], "filterOptions": [RAISED_AT_0]})
            assert member.is_armed
            assert not member.exceptions.get("filters")
            member.facts = member.facts.with_changes(rank=0, is_final=True)
            await hub.wanted.configure(cast("Member", member))
            assert member.exceptions == {"filters": ["raised"]}

    run(work())


def test_function_breakpoints() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            zero = await hub.fleet.join_rank(0, 1)
            body = await root.request(
                "setFunctionBreakpoints", {"breakpoints": [{"name": "step", "condition": "x # @0"}, {"name": "a b"}]}
            )
            assert [point["verified"] for point in body["breakpoints"]] == [True, False]
            assert zero.functions == [{"name": "step", "condition": "(x)"}]

    run(work())


def test_children_are_answered_from_the_table() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="perRank")
            await hub.fleet.join_rank(0, 1)
            child = await hub.child_session("actor/0")
            (pending,) = await set_lines(child, {"line": 1})
            assert "no such breakpoint yet" in pending["message"]
            await set_lines(root, {"line": 1})
            event = await child.wait_for("breakpoint", lambda body: body["breakpoint"]["verified"])
            assert event["breakpoint"]["id"] == pending["id"]
            await set_lines(child)
            assert [entry.line for entry in hub.wanted.all()] == [1]

    run(work())


def test_copies_and_symlinks_bind_and_give_back_the_persons_file(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "sub").mkdir(parents=True)
    (real / "sub" / "train.py").write_text("x = 1\n")
    (real / "sub" / "other.py").write_text("x = 1\n")
    (tmp_path / "link").symlink_to(real)
    path = str(tmp_path / "link" / "sub" / "train.py")
    copy = "/tmp/ray/session/runtime_resources/working_dir_files/_ray_pkg_1/sub"

    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single", workspaceFolder=str(tmp_path / "link" / "sub"))
            member = await hub.fleet.join_rank(0, 1)
            member.copies[path] = [f"{copy}/train.py"]
            (answer,) = await set_lines(root, {"line": 1}, path=path)
            assert answer["verified"] and answer["source"]["path"] == path
            assert list(member.lines) == [f"{copy}/train.py"]
            member.hit(f"{copy}/train.py", 1)
            stop = await root.wait_for("stopped")
            frame = (await root.request("stackTrace", {"threadId": stop["threadId"]}))["stackFrames"][0]
            assert frame["source"]["path"] == path
            paths = hub.wanted.paths
            assert paths.in_client(f"{copy}/other.py") == str(tmp_path / "link" / "sub" / "other.py")
            assert paths.in_client(str(real / "sub" / "other.py")) == str(tmp_path / "link" / "sub" / "other.py")
            assert paths.in_client("/usr/lib/python3/os.py") == "/usr/lib/python3/os.py"

    run(work())


def test_path_mappings_hold_both_ways() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            mappings = [{"localRoot": "/home/me/ws", "remoteRoot": "/app"}]
            root = await hub.root_session(sessions="single", pathMappings=mappings)
            member = await hub.fleet.join_rank(0, 1)
            await set_lines(root, {"line": 1}, path="/home/me/ws/a/b.py")
            assert list(member.lines) == ["/app/a/b.py"]
            assert hub.wanted.paths.in_client("/app/c.py") == "/home/me/ws/c.py"

    run(work())


@pytest.mark.parametrize("just_my_code", [True, False])
def test_attach_arguments(just_my_code: Any) -> None:
    async def work() -> None:
        wanted = Wanted(LaunchSettings(just_my_code=just_my_code))
        installed = "/venv/lib/python3.11/site-packages/verl/trainer.py"
        await wanted.set_lines(installed, [{"line": 1}])
        arguments = wanted.attach_arguments(cast(Member, None))
        assert arguments["justMyCode"] is just_my_code
        assert {"path": installed, "include": True} in arguments["rules"]
        assert arguments["redirectOutput"] is False

    run(work())
