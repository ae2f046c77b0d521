"""``rankscope/compare`` and ``@0-3 expr`` in the console, against fake ranks."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine
from typing import Any

import pytest

from rankscope.dap.messages import DapError
from support.dap_client import Session
from support.fake_ranks import FakeHub, FakeMember

TRAIN = "/code/train.py"


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 20))


def number(value: float) -> dict[str, Any]:
    return {"kind": "number", "text": repr(value), "type": "float", "value": value}


async def stopped(hub: FakeHub, count: int, **settings: Any) -> tuple[Session, list[FakeMember]]:
    """A root session and so many ranks that have stopped."""
    root = await hub.root_session(sessions="single", **settings)
    members = [await hub.fleet.join_rank(rank, count) for rank in range(count)]
    for member in members:
        member.is_armed = True
        member.stop()
    return root, members


async def top_frames(session: Session) -> list[dict[str, Any]]:
    """The stack of who stopped first."""
    body = await session.wait_for("stopped")
    frames: list[dict[str, Any]] = (await session.request("stackTrace", {"threadId": body["threadId"]}))["stackFrames"]
    return frames


def of(body: dict[str, Any], label: str) -> dict[str, Any]:
    row: dict[str, Any] = next(row for row in body["rows"] if row["label"] == label)
    return row


def test_equal_answers_are_grouped_and_numbers_summed_up() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root, members = await stopped(hub, 4)
            for member, value in zip(members, (0.25, 0.25, math.nan, 0.25), strict=True):
                member.answers["loss"] = number(value)
            body = await root.request("rankscope/compare", {"expression": " loss "})
            assert [(group["ranks"], group["text"], group["isMajority"]) for group in body["groups"]] == [
                ("0,1,3", "0.25", True),
                ("2", "nan", False),
            ]
            assert body["expression"] == "loss"
            assert body["stats"] == {
                "min": 0.25, "max": 0.25, "mean": 0.25, "std": 0.0, "nan": 1, "inf": 0, "outliers": [],
            }  # fmt: skip
            row = of(body, "actor 2")
            assert (row["value"], row["state"], row["rank"], row["group"]) == ("NaN", "paused", 2, "actor")
            assert row["frame"] == {"name": "f0", "path": TRAIN, "line": 10}
            assert body["message"] == "4 of 4 ranks answered, 2 different answers"
            evaluated = [arguments for command, arguments in members[0].asked if command == "evaluate"]
            assert [arguments["frameId"] for arguments in evaluated] == [50]

    run(work())


def test_who_is_silent_late_running_absent_or_gone_is_named() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root, members = await stopped(hub, 6)
            members[0].silent.add("reply")
            members[1].answers["loss"] = {"kind": "late", "text": "not evaluated within 1 s", "type": ""}
            members[2]._go()
            hub.fleet.leave(members[3], "killed by SIGKILL")
            members[4].silent.add("stackTrace")
            members[5].answers["loss"] = number(1.0)
            body = await root.request("rankscope/compare", {"expression": "loss", "ranks": "0-7", "timeout": 0.1})
            told = {row["rank"]: (row["kind"], row["text"]) for row in body["rows"]}
            assert told == {
                0: ("late", "no answer within 0.1 s"),
                1: ("late", "not evaluated within 1 s"),
                2: ("running", "in all_reduce"),
                3: ("error", "has crashed: killed by SIGKILL"),
                4: ("late", "no answer within 0.1 s"),
                5: ("number", "1.0"),
            }
            assert body["late"] == ["actor 0", "actor 1", "actor 4"]
            assert body["absent"] == "6,7"
            assert "late: actor 0, actor 1, actor 4" in body["message"]
            assert "no such rank: 6,7" in body["message"]

    run(work())


def test_a_restarted_rank_is_asked_not_its_predecessor() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root, members = await stopped(hub, 2)
            hub.fleet.leave(members[0], "killed")
            again = await hub.fleet.join("actor 0 again", group="actor", rank=0, world_size=2, is_final=True)
            again.stop()
            body = await root.request("rankscope/compare", {"expression": "x"})
            assert [row["label"] for row in body["rows"]] == ["actor 0 again", "actor 1"]

    run(work())


@pytest.mark.parametrize(
    "answer", [{}, {"kind": "number", "text": "3"}, {"text": 7}, {"kind": "text", "text": "x" * 9_000_000}]
)
def test_garbage_and_megabytes_spoil_one_row(answer: dict[str, Any]) -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root, members = await stopped(hub, 2)
            members[0].answers["x"] = answer
            members[1].answers["x"] = number(1.0)
            body = await root.request("rankscope/compare", {"expression": "x"})
            assert len(str(of(body, "actor 0"))) < 10_000
            assert of(body, "actor 1")["value"] == 1.0

    run(work())


def test_a_rank_set_of_another_group_and_the_driver() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root, _ = await stopped(hub, 2, rankSets={"first": "critic/0"})
            critic = await hub.fleet.join_rank(0, 1, "critic")
            driver = await hub.fleet.join_driver()
            for member in (critic, driver):
                member.stop()
            body = await root.request("rankscope/compare", {"expression": "x", "ranks": "first,driver"})
            assert [group["ranks"] for group in body["groups"]] == ["critic/0,driver"]
            body = await root.request("rankscope/compare", {"expression": "x"})
            assert [group["ranks"] for group in body["groups"]] == ["actor/0,1,critic/0"]
            body = await root.request("rankscope/compare", {"expression": "x", "members": [driver.id, "nobody"]})
            assert [row["label"] for row in body["rows"]] == ["driver train.py"]

    run(work())


def test_the_selected_frame_names_the_function_in_which_all_evaluate() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root, members = await stopped(hub, 2)
            chosen = (await top_frames(root))[3]
            await root.request("rankscope/compare", {"expression": "x", "frameId": chosen["id"]})
            for member in members:
                assert member.asked[-1][1]["frameId"] == 53
            members[1]._on_stackTrace = lambda arguments: {  # type: ignore[method-assign]
                "stackFrames": [{"id": 9, "name": "other", "line": 4, "source": {"path": TRAIN}}]
            }
            body = await root.request("rankscope/compare", {"expression": "x", "frameId": chosen["id"]})
            assert of(body, "actor 1")["text"] == "is not in f3 but in other, line 4"

    run(work())


def test_what_cannot_be_read_reaches_no_rank() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root, members = await stopped(hub, 1)
            before = len(members[0].asked)
            for arguments in ({"expression": "x ="}, {"expression": ""}, {"expression": "x", "ranks": "0,?"}):
                with pytest.raises(DapError, match="at column"):
                    await root.request("rankscope/compare", arguments)
            assert len(members[0].asked) == before

    run(work())


def test_numbers_differ_from_a_reference() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root, members = await stopped(hub, 3)
            for member, answer in zip(members, (number(1.0), number(1.5), {"kind": "text", "text": "a"}), strict=True):
                member.answers["x"] = answer
            asked = {"expression": "x", "withDelta": True, "reference": members[0].id}
            body = await root.request("rankscope/compare", asked)
            assert "delta" not in of(body, "actor 0")
            assert of(body, "actor 1")["delta"] == {"max": 0.5, "mean": 0.5, "index": None, "nan": 0, "note": None}
            assert of(body, "actor 2")["delta"]["note"] == "it is nothing that can be compared with the reference"

    run(work())


def test_side_effects_are_warned_of() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root, _ = await stopped(hub, 1)
            body = await root.request("rankscope/compare", {"expression": "weight.zero_()"})
            assert body["warning"] == "each rank has called zero_: what that changed stays changed"
            assert (await root.request("rankscope/compare", {"expression": "weight.sum()"}))["warning"] is None

    run(work())


def test_two_people_compare_at_once() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root, members = await stopped(hub, 2)
            other = await hub.child_session("actor/0")
            for member in members:
                member.answers |= {"a": number(1.0), "b": number(2.0)}
            bodies = await asyncio.gather(
                *(
                    session.request("rankscope/compare", {"expression": name})
                    for session in (root, other)
                    for name in "ab"
                )
            )
            assert [[row["value"] for row in body["rows"]] for body in bodies] == [[1.0] * 2, [2.0] * 2] * 2

    run(work())


# --- the debug console ----------------------------------------------------------------------------


async def typed(session: Session, text: str, context: str = "repl") -> str:
    body = await session.request("evaluate", {"expression": text, "context": context})
    assert body["variablesReference"] == 0
    return str(body["result"])


def test_the_console_answers_in_lines() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root, members = await stopped(hub, 4)
            for member, value in zip(members, (0.25, 0.25, 0.25, math.nan), strict=True):
                member.answers["loss"] = number(value)
            assert await typed(root, "@all loss") == "0-2: 0.25\n3: nan"
            assert await typed(root, "@actor/3 loss") == "3: nan"
            assert await typed(root, "@1-2 loss", context="watch") == "1,2: 0.25"
            assert await typed(root, "@0,7 loss") == "0: 0.25\n7: no such rank"

    run(work())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@0,x loss", "Rank set '0,x': 'x' is neither a number nor a name in rankSets at column 3."),
        ("@5 loss", "No such rank: 5."),
        ("@ loss", "Which ranks?"),
        ("@all loss +", "at column"),
    ],
)
def test_the_console_points_at_what_is_wrong(text: str, message: str) -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root, _ = await stopped(hub, 2)
            with pytest.raises(DapError) as caught:
                await typed(root, text)
            assert message in str(caught.value)

    run(work())


def test_a_decorator_and_any_other_text_go_to_the_debugger() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root, _ = await stopped(hub, 1)
            for text in ("@torch.no_grad()\ndef f(): ...", "a @ b"):
                body = await root.request("evaluate", {"expression": text, "context": "repl"})
                assert body["result"] == f"actor 0: {text}"
            hover = await root.request("evaluate", {"expression": "@all x", "context": "hover"})
            assert hover["result"] == "actor 0: @all x"

    run(work())


def test_completions_come_after_the_set() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root, members = await stopped(hub, 1)
            members[0]._on_completions = lambda asked: {  # type: ignore[attr-defined]
                "targets": [{"label": "loss", "start": asked["column"] - 3, "length": 2}]
            }
            asked = {"text": "@all lo", "column": 8, "frameId": (await top_frames(root))[0]["id"]}
            body = await root.request("completions", asked)
            assert members[0].asked[-1][1]["text"] == "lo"
            assert body["targets"] == [{"label": "loss", "start": 5, "length": 2}]

    run(work())
