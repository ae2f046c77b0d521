"""Jobs whose ranks hang each other: what is said, when, and of whom. Real gloo ranks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from rankscope.postmortem import kept_run
from rankscope.record import RUNS
from support.hub_session import Body, HubSession
from support.runs import JOBS, environment, line_of, point, python

pytestmark = [pytest.mark.torch, pytest.mark.slow]

JOB = "hangs_torch.py"
NEVER = 600.0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


def hung(
    folder: Path,
    how: str,
    work: Callable[[HubSession], Awaitable[None]],
    *,
    ranks: int = 4,
    hang_after: float = 2.0,
    breakpoints: dict[str, list[Body]] | None = None,
    **added: str,
) -> None:
    """Start the job, do ``work`` while it hangs."""

    async def whole() -> None:
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
        session = await HubSession.launch(
            python(str(JOBS / JOB), str(ranks)),
            environment(**place, HANGS_BY=how, HANGS_FOLDER=str(folder), **added),
            breakpoints,
            cwd=str(folder),
            hangAfter=hang_after,
            __extension={"version": "test"},
        )
        try:
            await work(session)
        finally:
            await session.close()

    asyncio.run(asyncio.wait_for(whole(), 110))


def findings(session: HubSession, kind: str) -> list[Body]:
    return [body for body in session.of("rankscope/finding") if body["kind"] == kind]


async def the_finding(session: HubSession, kind: str) -> Body:
    await session.until(lambda: bool(findings(session, kind)), 90)
    return findings(session, kind)[0]


async def marks(session: HubSession) -> dict[str, str]:
    return {member["label"]: member["stuck"] for member in await session.members() if member["stuck"]}


async def answer_to_why(session: HubSession, is_enough: Callable[[Body], bool]) -> Body:
    """Ask why it is stuck until the answer is as wished."""
    while not is_enough(answer := await session.request("rankscope/whyStuck")):
        await asyncio.sleep(0.1)
    return answer


def longest(answer: Body) -> float:
    return max((group["seconds"] for group in answer["groups"]), default=0.0)


async def ends(session: HubSession) -> None:
    await session.until(lambda: bool(session.of("terminated")))


def test_a_missing_rank_is_named_with_both_lines_and_the_finding_stays_when_it_comes_after_all(tmp_path: Path) -> None:
    async def work(session: HubSession) -> None:
        found = await the_finding(session, "hang")
        elsewhere, waiting = line_of(JOB, "elsewhere"), line_of(JOB, "waiting")
        assert found["text"].startswith("world 0,1,3 wait in all_reduce (#2 of default_pg) for world 2")
        assert found["text"].endswith(f"at {JOB}:{elsewhere} in wait_for_go")
        assert (found["label"], Path(found["path"]).name, found["line"]) == ("world 2", JOB, elsewhere)
        page = found["details"]["text"]
        assert f"{JOB}:{waiting} in missing" in page
        assert "distributed_c10d.py" in page and "wait_for_go" in page
        [stall] = found["details"]["stalls"]
        assert (stall["op"], stall["seq"], len(stall["waiting"]), len(stall["missing"])) == ("all_reduce", 2, 3, 1)
        members = await session.until_members(lambda members: sum(bool(one["stuck"]) for one in members) == 4)
        stuck = {one["label"]: one["stuck"] for one in members}
        assert stuck["world 2"] == "3 wait for it in all_reduce (#2 of default_pg)"
        assert stuck["world 0"] == "waits for world 2 in all_reduce (#2 of default_pg)"
        (tmp_path / "GO").touch()
        await session.until_members(lambda members: not any(one["stuck"] for one in members))
        await ends(session)

    hung(tmp_path, "missing", work)
    [folder] = (tmp_path / RUNS).iterdir()
    [kept] = kept_run.open_run(folder).findings
    assert kept["kind"] == "hang" and kept["how"].startswith("resolved after ")
    assert kept["resolved"] > 2


def test_a_rank_that_sleeps_is_no_hang_before_its_time_but_is_told_on_demand(tmp_path: Path) -> None:
    async def work(session: HubSession) -> None:
        answer = await answer_to_why(session, lambda answer: longest(answer) > 3)
        assert answer["findings"][0].startswith("world 0,1,3 wait in all_reduce (#2 of default_pg) for world 2")
        assert answer["text"].startswith(answer["findings"][0])
        (tmp_path / "GO").touch()
        await ends(session)
        assert session.of("rankscope/finding") == []

    hung(tmp_path, "missing", work, hang_after=NEVER)


def test_whom_the_debugger_stops_hangs_nobody(tmp_path: Path) -> None:
    async def work(session: HubSession) -> None:
        [stop] = await session.until_stops(1)
        answer = await answer_to_why(session, lambda answer: longest(answer) > 4)
        assert "world 2, which is stopped by the debugger" in answer["findings"][0]
        assert await marks(session) == {}
        await session.request("continue", threadId=stop["threadId"])
        await ends(session)
        assert session.of("rankscope/finding") == []

    hung(tmp_path, "paused", work, breakpoints=point(JOB, "pause", "True  # @2"))


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("op", "op mismatch: world 2 runs broadcast of float32[4] where world 0,1,3 run all_reduce of float32[4]"),
        (
            "shape",
            "size mismatch: world 2 runs all_reduce of float32[2] where world 0,1,3 run all_reduce of float32[4]",
        ),
        ("dtype", "dtype mismatch: world 2 runs all_reduce of float64[4] where world 0,3 run all_reduce of float32[4]"),
    ],
)
def test_a_mismatch_is_told_at_once(tmp_path: Path, how: str, text: str) -> None:
    async def work(session: HubSession) -> None:
        found = await the_finding(session, "mismatch")
        assert found["text"] == f"{text} (#2 of default_pg)"
        assert found["label"] == "world 2"
        if how == "op":  # whoever shares no type with the others may be gone by now
            assert found["line"] == line_of(JOB, "odd")

    hung(tmp_path, how, work, hang_after=NEVER)


def test_a_rank_that_has_ended_never_comes(tmp_path: Path) -> None:
    async def work(session: HubSession) -> None:
        found = await the_finding(session, "hang")
        assert "for world 2, which has exited" in found["text"]
        assert found["details"]["stalls"][0]["op"] == "all_reduce"

    hung(tmp_path, "early_exit", work, hang_after=6.0)


def test_two_sub_groups_that_wait_for_each_other_are_named_as_a_circle(tmp_path: Path) -> None:
    async def work(session: HubSession) -> None:
        found = await the_finding(session, "hang")
        assert found["text"].startswith("deadlock: ")
        assert "world 0 waits in all_reduce (#1 of first) for world 1" in found["text"]
        assert "world 1 waits in all_reduce (#1 of second) for world 0" in found["text"]
        assert found["details"]["isDeadlock"]
        assert found["line"] == line_of(JOB, "crossed")
        await session.until_members(lambda members: sum(bool(one["stuck"]) for one in members) == 4)

    hung(tmp_path, "sub_groups", work)


@pytest.mark.parametrize(("how", "mark"), [("peers", "recv"), ("batch", "batch")])
def test_a_receive_without_its_send_names_who_has_not_sent(tmp_path: Path, how: str, mark: str) -> None:
    async def work(session: HubSession) -> None:
        found = await the_finding(session, "hang")
        assert found["text"].startswith("world 1 waits in recv (#1 from rank 3) for world 3, which is in ")
        assert f"{JOB}:{line_of(JOB, mark)}" in found["details"]["text"]
        (tmp_path / "GO").touch()
        await ends(session)

    hung(tmp_path, how, work)


def test_without_the_recorder_the_calls_themselves_are_counted(tmp_path: Path) -> None:
    async def work(session: HubSession) -> None:
        found = await the_finding(session, "hang")
        assert found["text"].startswith("world 0,1,3 wait in all_reduce (#2 of default_pg) for world 2")
        (tmp_path / "GO").touch()
        await ends(session)

    hung(tmp_path, "missing", work, TORCH_FR_BUFFER_SIZE="0")


@pytest.mark.timeout(240)
def test_of_sixteen_ranks_one_is_missing(tmp_path: Path) -> None:
    async def work(session: HubSession) -> None:
        found = await the_finding(session, "hang")
        assert found["text"].startswith("world 0,1,3-15 wait in all_reduce (#2 of default_pg) for world 2")
        assert len(found["details"]["stalls"][0]["waiting"]) == 15

    hung(tmp_path, "missing", work, ranks=16, hang_after=3.0)
