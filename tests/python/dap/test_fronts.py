"""Fronts against fake ranks."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from dap.transcript import Transcript
from rankscope.dap.messages import DapError
from support.dap_client import Session
from support.fake_ranks import FakeHub, configure

TRAIN = "/code/train.py"
LINE = {TRAIN: [{"line": 10}]}


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 20))


def test_one_session_per_rank() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            said = Transcript()
            lines = {TRAIN: [{"line": 10, "condition": "True  # @actor/1"}]}
            root = said.listen(await hub.root_session(lines, sessions="perRank"))
            await said.note("two ranks join")
            await hub.fleet.join_driver()
            zero = await hub.fleet.join_rank(0, 2)
            one = await hub.fleet.join_rank(1, 2)
            await root.until(lambda: len([e for e, _ in root.events if e == "rankscope/startChild"]) == 2, "children")
            child0 = said.listen(await hub.child_session("actor/0", lines))
            child1 = said.listen(await hub.child_session("actor/1", lines))
            assert not zero.is_armed and one.is_armed
            await said.note("rank 1 stops")
            one.hit(TRAIN, 10)
            stop = await child1.wait_for("stopped")
            thread = {"threadId": stop["threadId"]}
            await said.ask(child1, "threads")
            stack = await said.ask(child1, "stackTrace", {**thread, "startFrame": 1, "levels": 2})
            scopes = await said.ask(child1, "scopes", {"frameId": stack["stackFrames"][0]["id"]})
            await said.ask(child1, "variables", {"variablesReference": scopes["scopes"][0]["variablesReference"]})
            await said.ask(child1, "evaluate", {"expression": "loss", "frameId": stack["stackFrames"][0]["id"]})
            await said.note("rank 0 is dormant and looked at")
            thread0 = (await said.ask(child0, "threads"))["threads"][0]["id"]
            await said.ask(child0, "stackTrace", {"threadId": thread0})
            await said.note("rank 0 is paused: no focus for it but what was asked for")
            await said.ask(child0, "pause", {"threadId": thread0})
            await child0.wait_for("stopped")
            await said.note("rank 1 steps, then runs on")
            await said.ask(child1, "next", thread)
            await child1.wait_for("stopped", lambda body: body["reason"] == "step")
            await said.ask(child1, "continue", thread)
            with pytest.raises(DapError, match="This frame is gone"):
                await child1.request("scopes", {"frameId": stack["stackFrames"][0]["id"]})
            await said.note("the driver ends")
            hub.job.driver_exited(0)
            await root.wait_for("terminated")
            await said.check("per_rank")

    run(work())


def test_one_session_for_all() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            said = Transcript()
            root = said.listen(await hub.root_session(LINE, sessions="single"))
            await hub.fleet.join_driver()
            zero, one = await hub.fleet.join_rank(0, 2), await hub.fleet.join_rank(1, 2)
            await said.note("both stop")
            zero.hit(TRAIN, 10)
            one.hit(TRAIN, 10)
            stops = await root.until(lambda: [b for e, b in root.events if e == "stopped"][1:] and True, "two stops")
            assert stops
            await said.ask(root, "threads")
            first = next(body for event, body in root.events if event == "stopped")
            await said.note("one goes on, the other stays")
            await said.ask(root, "continue", {"threadId": first["threadId"]})
            assert one.stopped and not zero.stopped
            await said.note("a logpoint prints")
            one.print("loss 3\nstep 4\n")
            await root.wait_for("output")
            await said.check("single")

    run(work())


def test_the_standard_reverse_request_opens_children() -> None:
    async def work() -> None:
        asked = []

        class Client:
            async def do_start_debugging(self, arguments: dict[str, Any]) -> dict[str, Any]:
                asked.append(arguments["configuration"]["session"]["ranks"])
                return {}

        async with FakeHub() as hub:
            root = await hub.root_session(
                client={"supportsRankscopeChildren": False, "supportsStartDebuggingRequest": True}, sessions="perGroup"
            )
            root.answers = Client()
            await hub.fleet.join_rank(0, 2)
            await hub.fleet.join_rank(1, 2)
            await hub.fleet.join_rank(0, 1, group="critic")
            await root.request("threads")
            assert asked == ["actor/all", "critic/all"]

    run(work())


def test_without_children_the_root_presents_all_and_greyed_ranks_nowhere() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(client={"supportsRankscopeChildren": False})
            await hub.fleet.join_rank(0, 2)
            member = await hub.fleet.join_rank(1, 2)
            member.is_greyed = True
            hub.fleet.changed(member)
            names = [thread["name"] for thread in (await root.request("threads"))["threads"]]
            assert names == ["MainThread"]

    run(work())


def test_a_stop_before_its_session_is_open_is_told_there() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(LINE, sessions="perRank")
            one = await hub.fleet.join_rank(1, 2)
            one.hit(TRAIN, 10)
            child = await hub.child_session("actor/1", LINE)
            stop = await child.wait_for("stopped")
            assert "preserveFocusHint" not in stop
            assert len(stop["hitBreakpointIds"]) == 1
            await root.request("threads")
            assert not [body for event, body in root.events if event == "stopped"]

    run(work())


def test_a_rank_number_that_becomes_final_moves_to_its_session() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            await hub.root_session(sessions="perRank")
            member = await hub.fleet.join_rank(0, 2, is_final=False)
            zero, one = await hub.child_session("actor/0"), await hub.child_session("actor/1")
            assert len((await zero.request("threads"))["threads"]) == 1
            member.facts = member.facts.with_changes(rank=1, is_final=True)
            hub.fleet.changed(member)
            assert (await zero.request("threads"))["threads"] == []
            assert len((await one.request("threads"))["threads"]) == 1

    run(work())


def test_a_launch_that_cannot_be_read_is_refused_for_the_person() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            session = await hub.connect("root")
            with pytest.raises(DapError, match="'sessions': 'x' is none of") as caught:
                await configure(session, "launch", {"command": "x", "sessions": "x"})
            assert caught.value.code == "bad-launch"
            assert hub.done == []

    run(work())


def test_a_second_root_is_refused() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            await hub.root_session()
            with pytest.raises(DapError, match="has a root session already") as caught:
                await hub.root_session()
            assert caught.value.code == "already-launched"

    run(work())


def test_a_silent_rank_is_named_and_harms_nobody() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(LINE, sessions="single")
            zero, one = await hub.fleet.join_rank(0, 2), await hub.fleet.join_rank(1, 2)
            zero.hit(TRAIN, 10)
            one.hit(TRAIN, 10)
            zero.silent = {"continue", "threads", "stackTrace"}
            outcome = await root.request("rankscope/control", {"action": "continue"})
            assert outcome["done"] == ["actor 1"]
            assert outcome["late"] == ["actor 0"]
            names = [thread["name"] for thread in (await root.request("threads"))["threads"]]
            assert names[0] == "actor 0 · MainThread"
            thread = (await root.request("threads"))["threads"][0]["id"]
            with pytest.raises(DapError, match="actor 0 did not answer 'stackTrace' within 10 s"):
                await root.request("stackTrace", {"threadId": thread})

    run(work())


def test_pause_arms_the_dormant_and_they_are_let_go_after_a_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankscope.hub.breakpoints.QUIET_SECONDS", 0.02)

    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            members = [await hub.fleet.join_rank(rank, 3) for rank in range(3)]
            outcome = await root.request("rankscope/control", {"action": "pause", "ranks": "0-1"})
            assert sorted(outcome["done"]) == ["actor 0", "actor 1"]
            assert [member.is_armed for member in members] == [True, True, False]
            outcome = await root.request("rankscope/control", {"action": "next", "scope": "stopped"})
            assert sorted(outcome["done"]) == ["actor 0", "actor 1"]
            await root.request("rankscope/control", {"action": "continue"})
            await root.wait_for(
                "rankscope/ranksChanged",
                lambda body: (
                    [m["isArmed"] for m in body["members"]] == [False] * 3
                    and any(m["state"] == "running" for m in body["members"])
                    and not any(member.is_armed for member in members)
                ),
            )
            with pytest.raises(DapError, match="'jump' is none of"):
                await root.request("rankscope/control", {"action": "jump"})

    run(work())


def test_every_look_and_change_reaches_the_right_member() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(LINE, sessions="single")
            zero, one = await hub.fleet.join_rank(0, 2), await hub.fleet.join_rank(1, 2)
            one.hit(TRAIN, 10)
            thread = {"threadId": (await root.wait_for("stopped"))["threadId"]}
            frame = (await root.request("stackTrace", thread))["stackFrames"][0]["id"]
            scope = (await root.request("scopes", {"frameId": frame}))["scopes"][0]["variablesReference"]
            await root.request("setVariable", {"variablesReference": scope, "name": "loss", "value": "9"})
            assert one.variables["loss"] == "9" and zero.variables["loss"] == "0.25"
            page = await root.request("variables", {"variablesReference": scope, "start": 1, "count": 1})
            assert [variable["name"] for variable in page["variables"]] == ["step"]
            assert (await root.request("evaluate", {"expression": "1"}))["result"] == "actor 1: 1"
            assert (await root.request("exceptionInfo", thread))["exceptionId"] == "ValueError"
            await root.request("setExpression", {"frameId": frame, "expression": "x", "value": "1"})
            await root.request("completions", {"frameId": frame, "text": "lo", "column": 3})
            targets = (await root.request("stepInTargets", {"frameId": frame}))["targets"]
            await root.request("stepIn", {**thread, "targetId": targets[1]["id"]})
            assert ("stepIn", {"threadId": 7, "targetId": 1}) in one.asked
            target = (await root.request("gotoTargets", {"source": {"path": TRAIN}, "line": 12}))["targets"][0]
            await root.request("goto", {**thread, "targetId": target["id"]})
            assert ("goto", {"threadId": 7, "targetId": 5}) in one.asked
            await root.request("stepOut", thread)
            assert not [command for command, _ in zero.asked if command.startswith(("step", "goto", "eval", "set_v"))]

    run(work())


@pytest.mark.parametrize(("ends", "done"), [(True, ["launch", "end_job"]), (False, ["launch"])])
def test_disconnect_ends_the_job_or_frees_its_ranks(ends: Any, done: Any) -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(LINE, sessions="single")
            one = await hub.fleet.join_rank(1, 2)
            one.hit(TRAIN, 10)
            await root.request("disconnect", {"terminateDebuggee": ends})
            await asyncio.wait_for(root.channel.closed, 5)
            assert hub.done == done
            assert ends or not one.stopped

    run(work())


def test_children_are_terminated_before_the_root() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="perRank")
            await hub.fleet.join_rank(0, 1)
            child = await hub.child_session("actor/0")
            order: list[str] = []

            def note(session: Session) -> None:
                session.listeners.append(lambda event, _: order.append(session.name) if event == "terminated" else None)

            note(root)
            note(child)
            await root.request("terminate")
            await root.wait_for("terminated")
            await child.wait_for("terminated")
            assert (await root.wait_for("exited"))["exitCode"] == 143
            assert sorted(order) == ["actor/0", "root"]

    run(work())


def test_progress_and_notices() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(client={"supportsProgressReporting": True})
            for rank in range(3):
                await hub.fleet.join_rank(rank, 3)
            end = await root.wait_for("progressEnd")
            assert end["message"] == "3 of 3 ranks joined"
            hub.fleet.notice("warning", "something is odd", next(iter(hub.fleet.members.values())))
            output = await root.wait_for("output")
            assert output == {"category": "important", "output": "[actor 0] something is odd\n"}

    run(work())
