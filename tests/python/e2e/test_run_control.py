"""Sets of real gloo ranks are told to run and to stop: lock-step, barriers, pauses in C calls, stopping together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from support.hub_session import Body, HubSession
from support.runs import JOBS, environment, line_of, plain, point, program

pytestmark = [pytest.mark.torch, pytest.mark.slow]

JOB = "lockstep.py"
PATH = str(JOBS / JOB)

Work = Callable[[HubSession], Awaitable[None]]


def torchrun(ranks: int, *modes: str) -> tuple[str, ...]:
    return (program("torchrun"), "--standalone", "--nproc-per-node", str(ranks), PATH, *modes)


def job(
    folder: Path,
    work: Work,
    *modes: str,
    ranks: int = 4,
    breakpoints: dict[str, list[Body]] | None = None,
    seconds: float = 110,
    **settings: Any,
) -> None:
    """Start the job with breakpoints and do ``work`` with it."""

    async def whole() -> None:
        added = environment(LOCKSTEP_FOLDER=str(folder), OMP_NUM_THREADS="1")
        session = await HubSession.launch(torchrun(ranks, *modes), added, breakpoints, cwd=str(folder), **settings)
        try:
            await work(session)
        finally:
            await session.close()

    asyncio.run(asyncio.wait_for(whole(), seconds))


async def control(session: HubSession, action: str, **whom: Any) -> Body:
    return await session.request("rankscope/control", action=action, **whom)


async def ranks_of(session: HubSession) -> list[Body]:
    members = [member for member in await session.members() if member["role"] == "rank"]
    return sorted(members, key=lambda member: int(member["rank"]))


async def all_paused(session: HubSession, count: int) -> None:
    await session.until_members(lambda members: sum(member["state"] == "paused" for member in members) == count)


async def lines(session: HubSession) -> list[int]:
    """Where the ranks are, in their order."""
    frames = (await session.request("rankscope/frames"))["frames"]
    return [frames[member["id"]]["line"] for member in await ranks_of(session)]


async def ends(session: HubSession) -> list[str]:
    await session.until(lambda: bool(session.of("terminated")))
    return sorted(line for line in session.output.splitlines() if line.startswith("RESULT"))


@pytest.mark.timeout(240)  # DDP imports torch's compiler, in each rank, traced
def test_lock_step_over_a_ddp_construction_and_a_collective(tmp_path: Path) -> None:
    async def work(session: HubSession) -> None:
        await session.until_stops(4)
        await control(session, "next", ranks="all")
        await all_paused(session, 4)
        assert await lines(session) == [line_of(JOB, "wrapped")] * 4
        place = {"path": PATH, "line": line_of(JOB, "reduce")}
        assert len((await control(session, "runToCursor", ranks="all", **place))["done"]) == 4
        assert await lines(session) == [line_of(JOB, "reduce")] * 4

        some = await control(session, "next", ranks="0-2")
        assert (some["done"], len(some["pending"])) == ([], 3)
        assert [pending["call"] for pending in some["pending"]] == ["all_reduce"] * 3
        shown = [{"action": "next", "waitsFor": ["world 3"]}] * 3
        await session.until_members(lambda members: [one["pending"] for one in members if one["pending"]] == shown)
        assert [member["state"] for member in await ranks_of(session)] == ["running"] * 3 + ["paused"]

        assert (await control(session, "next", ranks="3"))["done"] == ["world 3"]
        await all_paused(session, 4)  # the three arrive by themselves
        assert await lines(session) == [line_of(JOB, "update")] * 4
        assert len((await control(session, "continue", scope="stopped"))["done"]) == 4
        results.extend(await ends(session))

    results: list[str] = []
    job(tmp_path, work, "ddp", seconds=200, breakpoints=point(JOB, "ddp", "True  # @all"))
    without = plain(*torchrun(4, "ddp"), cwd=tmp_path)
    assert results == sorted(without.results) and len(results) == 4


def test_a_barrier_waits_for_all_and_not_for_who_has_left(tmp_path: Path) -> None:
    async def work(session: HubSession) -> None:
        await session.until_stops(1)  # rank 3, before it leaves
        (tmp_path / "GO").touch()
        await session.until_stops(4)
        held = (await ranks_of(session))[:3]
        assert [member["barrier"] for member in held] == [["world 3"]] * 3
        told = session.of("stopped")[1:]
        assert all(body["preserveFocusHint"] and body["description"] == "held at a barrier" for body in told)
        session.events.clear()
        await control(session, "continue", ranks="3")
        await session.until(lambda: any("preserveFocusHint" not in body for body in session.of("stopped")))
        assert [member["barrier"] for member in await ranks_of(session)] == [None] * 4
        assert (await ranks_of(session))[3]["state"] == "exited"
        notices = "".join(body["output"] for body in session.of("output"))
        assert f"the barrier at {JOB}:{line_of(JOB, 'alone')} no longer waits for it" in notices
        await control(session, "continue", scope="stopped")
        await ends(session)

    points = [*point(JOB, "leave", "True  # @3")[PATH], *point(JOB, "alone", "True  # @all barrier")[PATH]]
    job(tmp_path, work, "spin", "early", breakpoints={PATH: points})


def test_a_rank_in_a_c_call_is_pause_pending_whatever_its_other_threads_do(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    async def work(session: HubSession) -> None:
        writer = os.open(tmp_path / "pipe", os.O_RDWR)
        try:
            await session.until(lambda: "RESULT reads" in session.output)
            outcome = await control(session, "pause", ranks="all")
            assert outcome["done"] == ["world 0"]
            assert [pending["label"] for pending in outcome["pending"]] == ["world 1"]
            zero, one = await ranks_of(session)
            assert (zero["state"], one["state"], one["pending"]["action"]) == ("paused", "running", "pause")
            assert len(session.of("stopped")) == 1
            os.write(writer, b"x")
            stop = (await session.until_stops(2))[1]
            frame = await session.top_frame(stop["threadId"])
            assert (frame["name"], frame["source"]["path"]) == ("read", PATH)
        finally:
            os.close(writer)
        assert (await ranks_of(session))[1]["pending"] is None
        (tmp_path / "GO").touch()
        await control(session, "continue", scope="stopped")
        await ends(session)

    job(tmp_path, work, "spin", "pipe", ranks=2)


def test_a_pause_that_is_taken_back_does_not_come_later(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    async def work(session: HubSession) -> None:
        writer = os.open(tmp_path / "pipe", os.O_RDWR)
        try:
            await session.until(lambda: "RESULT reads" in session.output)
            assert len((await control(session, "pause", ranks="1"))["pending"]) == 1
            assert (await control(session, "continue", ranks="1"))["done"] == ["world 1"]
            assert (await ranks_of(session))[1]["pending"] is None
            (tmp_path / "GO").touch()
            os.write(writer, b"x")
            await ends(session)
        finally:
            os.close(writer)
        assert not session.of("stopped")

    job(tmp_path, work, "spin", "pipe", ranks=2)


def test_eight_ranks_stop_together(tmp_path: Path) -> None:
    async def work(session: HubSession) -> None:
        await session.until_stops(8)
        await all_paused(session, 8)
        told = (await session.request("rankscope/ranks"))["skews"]
        while "world" not in told:
            told = (await session.request("rankscope/ranks"))["skews"]
        assert (told["world"]["stopped"], told["world"]["size"]) == (8, 8)
        assert sum("preserveFocusHint" not in body for body in session.of("stopped")) == 1
        await session.until(lambda: "8 of 8 ranks of world stopped within" in "".join(texts(session)))
        await session.set_breakpoints(PATH, [])
        (tmp_path / "GO").touch()
        assert len((await control(session, "continue", ranks="all"))["done"]) == 8
        await ends(session)

    job(tmp_path, work, "spin", ranks=8, breakpoints=point(JOB, "spin", "True  # @2"), stopTogether=True)


def texts(session: HubSession) -> list[str]:
    return [str(body.get("output")) for body in session.of("output")]


def test_who_is_in_a_c_call_when_the_others_stop_is_named_and_stops_later(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    async def work(session: HubSession) -> None:
        writer = os.open(tmp_path / "pipe", os.O_RDWR)
        try:
            await session.until(lambda: "RESULT reads" in session.output)
            await session.set_breakpoints(PATH, point(JOB, "spin", "True  # @0")[PATH])
            told = "1 of 2 ranks of world stopped; pause pending: world 1"
            await session.until(lambda: told in "".join(texts(session)))
            os.write(writer, b"x")
            await all_paused(session, 2)
        finally:
            os.close(writer)
        await session.set_breakpoints(PATH, [])
        (tmp_path / "GO").touch()
        await control(session, "continue", ranks="all")
        await ends(session)

    job(tmp_path, work, "spin", "pipe", ranks=2, stopTogether=True)
