"""Real ranks blocked in a collective, nothing armed: where everybody is, as one tree."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.hub_session import HubSession
from support.runs import JOBS, environment, line_of, program

pytestmark = [pytest.mark.slow, pytest.mark.torch]

JOB = JOBS / "blocked_ranks.py"
Node = dict[str, Any]


def walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node["children"]:
        yield from walk(child)


def at(tree: Node, mark: str) -> Node:
    """The one node at a marked line of the job."""
    line = line_of(JOB.name, mark)
    (found,) = (node for node in walk(tree) if node["path"] == str(JOB) and node["line"] == line)
    return found


async def launch(ranks: int, release: Path, **added: str) -> HubSession:
    torchrun = (program("torchrun"), "--standalone", "--nproc-per-node", str(ranks), str(JOB))
    return await HubSession.launch(torchrun, environment(RELEASE=str(release), **added))


async def until_stacks(session: HubSession, is_there: Callable[[Node], bool], **arguments: Any) -> dict[str, Any]:
    """Ask until the ranks are where they are to be; each has its own pace at the start."""
    while True:
        answer = await session.request("rankscope/stacks", **arguments)
        if is_there(answer["tree"]):
            return answer


def is_blocked(ranks: str, last: str) -> Callable[[Node], bool]:
    """All but the last rank in all_reduce, the last one waits for its release."""

    def is_there(tree: Node) -> bool:
        calls = {(node["name"], node["ranks"]) for node in walk(tree) if node["kind"] == "own"}
        in_call = {node["ranks"] for node in walk(tree) if node.get("call") == "all_reduce"}
        return ("wait_for_release", last) in calls and in_call == {ranks}

    return is_there


@pytest.mark.parametrize("ranks", [4, 16])
@pytest.mark.timeout(240)
def test_ranks_that_wait_for_one(tmp_path: Path, ranks: int) -> None:
    async def work() -> None:
        session = await launch(ranks, release := tmp_path / "release")
        try:
            others, last = f"0-{ranks - 2}", str(ranks - 1)
            answer = await until_stacks(session, is_blocked(others, last), ranks="all")
            assert not answer["late"] and not answer["failed"] and not answer["native"]
            assert answer["count"] == ranks
            tree = answer["tree"]
            assert tree["ranks"] == f"0-{ranks - 1}"
            reduce, late = at(tree, "reduce"), at(tree, "late")
            assert (reduce["ranks"], reduce["state"], reduce["call"]) == (others, "blocked", "all_reduce")
            assert (late["ranks"], late["state"]) == (last, "running")
            step = next(node for node in walk(tree) if node["name"] == "train_step")
            assert step["ranks"] == last, "the outlier comes first"
            assert {node["kind"] for node in walk(reduce)} == {"own", "library"}
            threads = [node for node in tree["children"] if node["kind"] == "thread"]
            assert "Thread (serve)" in [node["name"] for node in threads]
            assert not any("pydevd" in node["path"] or "/rankscope/agent/" in node["path"] for node in walk(tree))
            assert not any(member["isArmed"] for member in await session.members())
            await asyncio.to_thread(release.touch)
            await session.until(lambda: session.output.count("RESULT") == ranks)
        finally:
            await session.close()
        total = sum(range(ranks)) * 4 * 0.5
        assert {line.rpartition("sum=")[2] for line in session.output.splitlines() if "RESULT" in line} == {
            f"{total:.1f}"
        }

    asyncio.run(work())


def test_locals_on_demand_and_a_paused_rank_in_the_same_tree(tmp_path: Path) -> None:
    async def work() -> None:
        session = await launch(3, tmp_path / "release")
        try:
            await until_stacks(session, is_blocked("0,1", "2"), ranks="all")
            await session.request("rankscope/control", action="pause", ranks="2")
            answer = await until_stacks(
                session,
                lambda tree: any(node.get("state") == "paused" for node in walk(tree)),
                ranks="all",
                withLocals=True,
            )
            tree = answer["tree"]
            members = {member["id"]: member for member in await session.members()}
            kept = {members[name]["rank"]: found for name, found in at(tree, "reduce")["locals"].items()}
            assert sorted(kept) == [0, 1]
            texts = {one["name"]: one["text"] for one in kept[1]}
            assert texts["scale"] == "0.5"
            assert texts["gradient"].startswith("Tensor")
            assert "hunter2" not in str(tree)
            paused = next(node for node in walk(tree) if node.get("state") == "paused")
            assert (paused["name"], paused["ranks"]) == ("wait_for_release", "2")
            assert not any("pydevd" in node["path"] for node in walk(tree))
        finally:
            await session.close()

    asyncio.run(work())


@pytest.mark.skipif(not shutil.which("py-spy", path=str(Path(sys.executable).parent)), reason="no py-spy")
def test_a_rank_that_holds_the_interpreter(tmp_path: Path) -> None:
    async def work() -> None:
        session = await launch(3, tmp_path / "release", HOW="gil")
        try:
            answer = await until_stacks(
                session,
                lambda tree: (
                    any(node.get("call") == "all_reduce" and node["ranks"] == "0,1" for node in walk(tree))
                    and any(node["name"] == "hold_the_interpreter" for node in walk(tree))
                ),
                ranks="all",
            )
            assert answer["native"] == ["world 2"], answer["late"]
            assert answer["count"] == 3
            held = at(answer["tree"], "gil")
            assert held["ranks"] == "2"
            assert held["children"][0]["kind"] == "native"
            assert any("sleep" in node["name"] for node in walk(held))
            main = next(node for node in walk(answer["tree"]) if node["name"] == "main")
            assert main["ranks"] == "0-2", "both ways to read a stack meet in one tree"
        finally:
            await session.close()

    asyncio.run(work())
