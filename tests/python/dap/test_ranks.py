"""The requests and events of our own: ranks, frames, breakpoints, sessions, focus, progress."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from rankscope.dap.messages import DapError
from support.dap_client import Session
from support.fake_ranks import FakeHub, FakeMember, configure

TRAIN = "/code/train.py"
LINE = {TRAIN: [{"line": 10}]}
MARK: dict[str, Any] = {"__extension": {"version": "1"}}


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 20))


async def ranks(session: Session) -> dict[str, dict[str, Any]]:
    return {member["label"]: member for member in (await session.request("rankscope/ranks"))["members"]}


def asked_for(root: Session) -> list[str]:
    return [body["configuration"]["session"]["ranks"] for event, body in root.events if event == "rankscope/startChild"]


# --- the extension's mark -------------------------------------------------------------------------


def test_the_extensions_mark_opens_children_by_event_and_puts_a_button_on_errors() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            client = {"supportsRankscopeChildren": False}
            root = await hub.root_session(client=client, sessions="perRank", **MARK)
            await hub.fleet.join_rank(0, 1)
            await root.wait_for("rankscope/startChild")
            child = await hub.connect("actor/0", **client)
            await configure(child, "attach", {"session": {"ranks": "actor/0"}})
            for session in (root, child):
                answer = await raw_failure(session, "rankscope/openSession", {"session": "nobody/7"})
                assert answer["url"] == "command:rankscope.showLog"
                assert answer["urlLabel"] == "Show log"

    run(work())


def test_without_the_mark_errors_have_no_button() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session()
            answer = await raw_failure(root, "rankscope/openSession", {"session": "nobody/7"})
            assert "url" not in answer

    run(work())


def test_a_marked_launch_that_cannot_be_read_has_the_button_already() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            session = await hub.connect("root")
            answer = await raw_failure(session, "launch", {"command": "x", "sessions": "x", **MARK})
            assert answer["code"] == "bad-launch"
            assert answer["showUser"]
            assert answer["url"] == "command:rankscope.showLog"

    run(work())


async def raw_failure(session: Session, command: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The ``error`` of the answer as it came."""
    seen: list[dict[str, Any]] = []
    own = session.channel._take

    def take(handler: object, message: dict[str, Any]) -> None:
        if message.get("type") == "response" and message.get("command") == command:
            seen.append(message)
        own(handler, message)

    session.channel._take = take  # type: ignore[method-assign]
    with pytest.raises(DapError):
        await session.request(command, arguments)
    error: dict[str, Any] = seen[-1]["body"]["error"]
    return error


# --- ranks ----------------------------------------------------------------------------------------


def test_ranks_say_whether_their_session_is_open_and_how_they_ended() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(LINE, sessions="perRank")
            zero = await hub.fleet.join_rank(0, 2)
            one = await hub.fleet.join_rank(1, 2)
            assert [m["hasSession"] for m in (await ranks(root)).values()] == [False, False]
            child = await hub.child_session("actor/1", LINE)
            await root.wait_for("rankscope/ranksChanged", lambda body: body["members"][1]["hasSession"])
            one.hit(TRAIN, 10)
            thread = (await child.wait_for("stopped"))["threadId"]
            members = await ranks(root)
            assert members["actor 1"]["threadIds"] == [thread]  # of the session that presents it
            assert members["actor 1"]["stopped"] == {"reason": "breakpoint"}
            assert members["actor 0"]["threadIds"] == []
            hub.fleet.leave(zero, "ValueError: bad batch")
            await child.close()
            body = await root.wait_for("rankscope/ranksChanged", lambda body: body["members"][0]["state"] == "crashed")
            assert body["members"][0]["ending"] == "ValueError: bad batch"
            await root.until(
                lambda: (
                    not [b for e, b in root.events if e == "rankscope/ranksChanged"][-1]["members"][1]["hasSession"]
                ),
                "the session's end",
            )

    run(work())


def test_control_of_single_members() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            zero, one = await hub.fleet.join_rank(0, 2), await hub.fleet.join_rank(1, 2)
            child = await hub.fleet.join("actor 1 child 5", role="child", group="actor", rank=1)
            ask = {"action": "pause", "members": [one.id, child.id, "nobody"]}
            assert (await root.request("rankscope/control", ask))["done"] == [one.label, child.label]
            assert not zero.stopped
            ask = {"action": "continue", "members": [one.id]}
            assert (await root.request("rankscope/control", ask))["done"] == [one.label]
            assert child.stopped

    run(work())


# --- frames ---------------------------------------------------------------------------------------


def test_frames_of_running_stopped_late_and_ended_members() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(
                LINE, sessions="single", pathMappings=[{"localRoot": "/mine", "remoteRoot": "/far"}]
            )
            running, stopped, late, ended, elsewhere = [await hub.fleet.join_rank(rank, 5) for rank in range(5)]
            running.top = {"name": "step", "path": "/far/train.py", "line": 9, "call": "all_reduce"}
            stopped.hit(TRAIN, 10)
            late.silent = {"top"}
            hub.fleet.leave(ended)
            elsewhere.top = None
            body = await root.request("rankscope/frames")
            assert body["late"] == [late.id]
            assert body["frames"] == {
                running.id: {"name": "step", "path": "/mine/train.py", "line": 9, "call": "all_reduce"},
                stopped.id: {"name": "f0", "path": TRAIN, "line": 10, "call": ""},
                ended.id: None,
                elsewhere.id: None,
            }
            some = await root.request("rankscope/frames", {"members": [running.id, "nobody"]})
            assert list(some["frames"]) == [running.id]
            assert some["late"] == []

    run(work())


# --- breakpoints ----------------------------------------------------------------------------------


def test_a_stop_before_the_answer_that_names_its_breakpoint_is_a_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = FakeMember._on_setBreakpoints

    def stops_at_once(member: FakeMember, arguments: dict[str, Any]) -> dict[str, Any]:
        body = answer(member, arguments)
        member.stop(hitBreakpointIds=[body["breakpoints"][0]["id"]])
        return body

    async def work() -> None:
        monkeypatch.setattr(FakeMember, "_on_setBreakpoints", stops_at_once)
        async with FakeHub() as hub:
            root = await hub.root_session({TRAIN: [{"line": 10}]}, sessions="single", **MARK)
            zero = await hub.fleet.join_rank(0, 1)
            await root.wait_for(
                "rankscope/breakpointsChanged", lambda body: body["breakpoints"][0]["hits"] == {zero.id: 1}
            )

    run(work())


def test_breakpoints_say_who_has_them_and_whom_they_stopped() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            lines: dict[str, list[dict[str, Any]]] = {
                TRAIN: [
                    {"line": 10},
                    {"line": 11, "condition": "True  # @actor/1"},
                    {"line": 12, "condition": "1 +"},
                    {"line": 13, "condition": "# @5"},
                ]
            }
            root = await hub.root_session(lines, sessions="single", **MARK)
            zero, one = await hub.fleet.join_rank(0, 3), await hub.fleet.join_rank(1, 3)
            one.hit(TRAIN, 11)
            one.stop("step")
            one.hit(TRAIN, 11)
            zero.hit(TRAIN, 10)
            body = await root.wait_for(
                "rankscope/breakpointsChanged", lambda body: body["breakpoints"][1]["hits"] == {one.id: 2}
            )
            everywhere, limited, malformed, nobody = body["breakpoints"]
            assert everywhere == {
                "path": TRAIN,
                "line": 10,
                "ranks": "",
                "isBarrier": False,
                "error": "",
                "joined": [zero.id, one.id],
                "verified": [zero.id, one.id],
                "pending": 1,
                "hits": {zero.id: 1},
            }
            assert (limited["ranks"], limited["joined"], limited["pending"]) == ("actor/1", [one.id], 0)
            assert "Condition '1 +'" in malformed["error"]
            assert malformed["joined"] == []
            assert (nobody["joined"], nobody["error"], nobody["pending"]) == ([], "", 0)
            assert (await root.request("rankscope/breakpoints"))["breakpoints"] == body["breakpoints"]

    run(work())


def test_a_line_without_code_says_why_no_rank_has_it() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single", **MARK)
            one = await hub.fleet.join_rank(1, 2)
            one.refused_lines = {10}
            await root.request("setBreakpoints", {"source": {"path": TRAIN}, "breakpoints": [{"line": 10}]})
            (status,) = (await root.request("rankscope/breakpoints"))["breakpoints"]
            assert status["error"] == "Breakpoint added to invalid line."
            assert (status["joined"], status["verified"]) == ([one.id], [])

    run(work())


def test_only_a_marked_root_hears_of_breakpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankscope.dap.front_ranks._BREAKPOINTS_SECONDS", 0)  # told, if at all, before the ranks are

    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(LINE, sessions="single")
            (await hub.fleet.join_rank(0, 1)).hit(TRAIN, 10)
            await root.wait_for("rankscope/ranksChanged", lambda body: body["members"][0]["stopped"])
            assert not [event for event, _ in root.events if event == "rankscope/breakpointsChanged"]

    run(work())


# --- sessions -------------------------------------------------------------------------------------


def test_auto_is_per_rank_up_to_sixteen_and_per_group_beyond() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session()
            for rank in range(16):
                await hub.fleet.join_rank(rank, 16)
            await hub.fleet.join_rank(3, 17, group="critic")
            for rank in range(17):
                await hub.fleet.join_rank(rank, world_size=None, group="late")  # type: ignore[arg-type]
            await root.request("threads")
            own = [f"actor/{rank}" for rank in range(16)], [f"late/{rank}" for rank in range(16)]
            assert asked_for(root) == [*own[0], "critic/all", *own[1], "late/all"]
            group = await hub.child_session("late/all")
            assert len((await group.request("threads"))["threads"]) == 1  # those with a session of their own are there

    run(work())


def test_beyond_the_cap_ranks_are_presented_while_stopped_or_when_asked_for() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(LINE, sessions="perRank", maxSessions=1)
            await hub.fleet.join_rank(0, 3)
            one, two = await hub.fleet.join_rank(1, 3), await hub.fleet.join_rank(2, 3)
            assert (await root.request("threads"))["threads"] == []
            assert asked_for(root) == ["actor/0"]
            one.hit(TRAIN, 10)
            stop = await root.wait_for("stopped")
            await root.request("next", {"threadId": stop["threadId"]})  # a step is no reason to go
            again = await root.wait_for("stopped", lambda body: body["reason"] == "step")
            assert again["threadId"] == stop["threadId"]
            await root.request("continue", {"threadId": stop["threadId"]})
            await root.wait_for("thread", lambda body: body == {"reason": "exited", "threadId": stop["threadId"]})
            assert (await root.request("threads"))["threads"] == []
            two.hit(TRAIN, 10)
            await root.wait_for("stopped", lambda body: body["threadId"] != stop["threadId"])
            await root.request("rankscope/openSession", {"session": "actor/2"})
            await root.request("rankscope/openSession", {"session": "actor/2"})
            assert asked_for(root) == ["actor/0", "actor/2"]
            child = await hub.child_session("actor/2", LINE)
            assert (await child.wait_for("stopped"))["reason"] == "breakpoint"
            await root.request("rankscope/openSession", {"session": "actor/2"})
            assert asked_for(root) == ["actor/0", "actor/2"]
            await child.close()
            with pytest.raises(DapError, match="No rank that runs has the session 'actor/7'") as caught:
                await root.request("rankscope/openSession", {"session": "actor/7"})
            assert caught.value.code == "no-such-session"

    run(work())


# --- focus ----------------------------------------------------------------------------------------


def test_focus_goes_to_another_session() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(LINE, sessions="perRank")
            zero, one = await hub.fleet.join_rank(0, 2), await hub.fleet.join_rank(1, 2)
            first, second = await hub.child_session("actor/0", LINE), await hub.child_session("actor/1", LINE)
            zero.hit(TRAIN, 10)
            thread = (await first.wait_for("stopped"))["threadId"]
            one.hit(TRAIN, 10)
            assert (await second.wait_for("stopped"))["preserveFocusHint"]
            del first.events[:], second.events[:]
            await root.request("rankscope/focus", {"member": one.id, "from": zero.id})
            stop = await second.wait_for("stopped")
            assert "preserveFocusHint" not in stop
            assert (stop["reason"], len(stop["hitBreakpointIds"])) == ("breakpoint", 1)
            await first.wait_for("stopped", lambda body: body["preserveFocusHint"] and body["threadId"] == thread)
            assert [body for event, body in first.events if event == "thread"] == [
                {"reason": "exited", "threadId": thread},
                {"reason": "started", "threadId": thread},
            ]
            await second.request("continue", {"threadId": stop["threadId"]})
            with pytest.raises(DapError, match="actor 1 runs"):
                await root.request("rankscope/focus", {"member": one.id})

    run(work())


# --- progress -------------------------------------------------------------------------------------


def test_waiting_for_created_actors_is_shown_and_can_be_cancelled() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(client={"supportsProgressReporting": True}, sessions="single")
            driver = await hub.fleet.join_driver()
            assert not [event for event, _ in root.events if event.startswith("progress")]
            hub.fleet.missing = 4
            hub.fleet.changed(driver)
            start = await root.wait_for("progressStart")
            assert (start["message"], start["cancellable"], start["percentage"]) == ("waiting for ranks", True, 0)
            hub.fleet.missing = 3
            await hub.fleet.join_rank(0, world_size=None)  # type: ignore[arg-type]
            assert (await root.wait_for("progressUpdate"))["message"] == "1 of 4 ranks joined"
            await root.request("cancel", {"progressId": "another"})
            assert hub.done == ["launch"]
            await root.request("cancel", {"progressId": start["progressId"]})
            assert hub.done == ["launch", "end_job cancelled while ranks were joining"]
            await root.wait_for("progressEnd")
            await root.wait_for("terminated")

    run(work())
