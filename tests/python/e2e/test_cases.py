"""Cases from people who do this job; the numbers are those of their public reports' list (P1, P2, …)."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.hub_session import Body, HubSession
from support.runs import JOBS, at, environment, is_running, line_of, plain, program, python, run, until

slow = pytest.mark.slow


def point(file: str, mark: str, condition: str = "") -> dict[str, list[Body]]:
    """One breakpoint, as a session takes it."""
    made: Body = {"line": line_of(file, mark)}
    if condition:
        made["condition"] = condition
    return {str(JOBS / file): [made]}


def session(
    command: tuple[str, ...], breakpoints: dict[str, list[Body]] | None = None, **added: str
) -> Coroutine[Any, Any, HubSession]:
    """A job that stands still when it stops."""
    return HubSession.launch(command, environment(**added), breakpoints, cwd=str(JOBS))


@slow
@pytest.mark.ray
@pytest.mark.parametrize("folder", ["working_dir", "."], ids=["in the folder", "above the folder"])
def test_p1_a_working_dir_copy_is_the_persons_own_file(folder: str) -> None:
    where = JOBS / "working_dir"
    options = ["--break", f"{where}/steps.py:{line_of('working_dir/steps.py', 'work')}@1"]
    under = run(options, *python(str(where / "driver.py")), cwd=JOBS / folder)
    [stop] = under.of("stopped")
    assert stop["stack"][0]["file"] == str(where / "steps.py")
    assert under.results == ["RESULT [0, 7] copied: True"]


@slow
@pytest.mark.ray
def test_p2_breakpoints_set_before_the_start_stop_in_tasks() -> None:
    under = run(
        ["--break", at("ray_tasks.py", "task", " if number == 4"), "--print", "number"], *python("ray_tasks.py")
    )
    assert [stop["values"][0]["value"] for stop in under.of("stopped")] == ["4"]
    assert under.results == plain(*python("ray_tasks.py")).results


@slow
@pytest.mark.ray
def test_p3_all_stopped_ranks_are_visible_and_controllable_together() -> None:
    async def case() -> None:
        job = await session(python("ray_two_groups.py"), point("ray_two_groups.py", "actor", "True  # @Actor/0-1"))
        try:
            await job.until_stops(2)
            stopped = [member["label"] for member in await job.members() if member["stopped"]]
            assert sorted(stopped) == ["Actor 0", "Actor 1"]
            for stop in job.of("stopped"):
                frame = await job.top_frame(stop["threadId"])
                assert frame["line"] == line_of("ray_two_groups.py", "actor")
            outcome = await job.request("rankscope/control", action="continue", scope="stopped")
            assert sorted(outcome["done"]) == ["Actor 0", "Actor 1"]
            await job.until(lambda: bool(job.of("terminated")))
            assert "RESULT critic [200, 201]" in job.output
        finally:
            await job.close()

    asyncio.run(case())


@slow
@pytest.mark.ray
@pytest.mark.torch
def test_p4_ray_train_workers_are_in_the_list_of_ranks() -> None:
    pytest.importorskip("ray.train", reason="ray[train] is not installed")

    async def case() -> None:
        job = await session(python("ray_train.py"), point("ray_train.py", "loss", "True  # @RayTrainWorker/1"))
        try:
            await job.until_stops(1)
            ranks = {member["label"]: member for member in await job.members() if member["role"] == "rank"}
            assert {"RayTrainWorker 0", "RayTrainWorker 1"} <= set(ranks)
            assert ranks["RayTrainWorker 1"]["stopped"] and ranks["RayTrainWorker 1"]["isFinal"]
            assert not ranks["RayTrainWorker 0"]["stopped"]
            await job.set_breakpoints(JOBS / "ray_train.py", [])
            await job.request("rankscope/control", action="continue", scope="stopped")
            await job.until(lambda: bool(job.of("terminated")))
            assert "RESULT error=None losses=['1.5', '1.5']" in job.output
        finally:
            await job.close()

    asyncio.run(case())


@slow
@pytest.mark.ray
def test_p6_breakpoint_in_driver_and_worker_waits_for_nobody_else() -> None:
    under = run([], *python("ray_breakpoint.py"))
    assert under.stops == ["Worker 0", "driver ray_breakpoint.py"]
    assert under.results == ["RESULT driver worker"]


@slow
@pytest.mark.ray
def test_p8_a_method_behind_a_dispatch_decorator_stops_on_each_rank() -> None:
    under = run(["--break", at("ray_dispatch.py", "update"), "--print", "loss"], *python("ray_dispatch.py"))
    assert under.stops == ["Worker 0", "Worker 1"]
    assert sorted(stop["values"][0]["value"] for stop in under.of("stopped")) == ["10", "11"]
    assert under.results == ["RESULT [10, 11]"]


@pytest.mark.torch
def test_torchs_own_breakpoint_stops_that_rank_and_blocks_no_other() -> None:
    job = program("torchrun"), "--standalone", "--nproc-per-node", "2", "torch_breakpoint.py"
    under = run([], *job)
    assert [(stop["rank"], stop["stack"][0]["function"]) for stop in under.of("stopped")] == [("world 1", "main")]
    assert under.results == ["RESULT rank=0 total=1.0", "RESULT rank=1 total=1.0"]
    assert under.exit_code == 0


def test_p9_rank_sets_say_which_rank_stops() -> None:
    under = run(["--break", at("plain_ranks.py", "step", "@1-3:2")], *python("plain_ranks.py", "4", "1"))
    assert under.stops == ["world 1", "world 3"]


@slow
@pytest.mark.torch
@pytest.mark.parametrize(
    "command",
    [
        ("torchrun", "--standalone", "--nproc-per-node", "2", "torchrun_train.py"),
        ("python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "torchrun_train.py"),
        ("bash", "run.sh"),
    ],
    ids=lambda command: " ".join(command[:3]),
)
def test_p10_the_command_is_taken_as_written(command: tuple[str, ...]) -> None:
    under = run(["--break", at("torchrun_train.py", "step", "@0 if step == 1")], *command)
    assert under.stops == ["world 0"], under.errors
    assert under.exit_code == 0


@slow
@pytest.mark.torch
def test_p11_the_children_of_accelerate_heed_breakpoints() -> None:
    accelerate = (program("accelerate"), "launch", "--multi_gpu", "--num_processes", "2", "accelerate_train.py")
    under = run(["--break", at("accelerate_train.py", "step", "@1"), "--print", "loss"], *accelerate)
    assert [stop["values"][0]["value"] for stop in under.of("stopped")] == ["4.0"], under.errors
    assert under.results == plain(*accelerate).results


def test_p12_stop_ends_every_rank_paused_or_not() -> None:
    async def case() -> None:
        job = await session(python("plain_ranks.py"), point("plain_ranks.py", "step", "True  # @1"))
        try:
            await job.until_stops(1)
            pids = [member["pid"] for member in await job.members()]
            started = time.monotonic()
            await job.request("terminate")
            await job.until(lambda: bool(job.of("terminated")))
            assert time.monotonic() - started < 6
            assert not any(is_running(pid) for pid in pids)
        finally:
            await job.close()

    asyncio.run(case())


def test_p12_disconnect_frees_every_rank(tmp_path: Path) -> None:
    done = tmp_path / "done"
    command = ("sh", "-c", f'"{sys.executable}" plain_ranks.py > "{done}.log" 2>&1 && touch "{done}"')

    async def case() -> None:
        job = await session(command, point("plain_ranks.py", "step", "True  # @all"))
        await job.until_stops(3)
        pids = [member["pid"] for member in await job.members()]
        await job.close(ends_job=False)
        until(done.exists, "the job ran to its end")
        assert not any(is_running(pid) for pid in pids)

    asyncio.run(case())


@slow
@pytest.mark.torch
def test_p13_a_short_time_out_survives_a_long_pause() -> None:
    """4 s for a collective, and rank 1 is held for 6 s between two of them; rank 0 is told to hold as well."""
    torchrun = (program("torchrun"), "--standalone", "--nproc-per-node", "2", "short_timeout.py")

    async def case() -> None:
        job = await session(torchrun, point("short_timeout.py", "between", "True  # @1"))
        try:
            await job.until_stops(1)
            with pytest.raises(TimeoutError):  # nothing may end meanwhile
                await job.until(lambda: bool(job.of("terminated")), seconds=6)
            await job.request("rankscope/control", action="continue", scope="stopped")
            await job.until(lambda: bool(job.of("terminated")))
            assert job.of("exited")[0]["exitCode"] == 0, job.output
            assert "RESULT rank=0 before=2.0 after=2.0" in job.output
            assert "RESULT rank=1 before=3.0 after=2.0" in job.output
        finally:
            await job.close()

    asyncio.run(case())


def test_p15_a_spawned_engine_stops_with_its_environment_untouched() -> None:
    under = run(
        ["--break", at("engine_child.py", "engine"), "--print", "request"], *python("engine_child.py"), RANK="0"
    )
    assert [stop["values"][0]["value"] for stop in under.of("stopped")] == ["10", "20"]
    assert all(" child " in rank for rank in under.stops)
    assert under.results == plain(*python("engine_child.py"), RANK="0").results


def test_a_paused_rank_is_killed_and_the_others_are_free(tmp_path: Path) -> None:
    async def case() -> None:
        job = await session(python("plain_ranks.py"), point("plain_ranks.py", "step", "True  # @1"))
        try:
            await job.until_stops(1)
            [paused] = [member for member in await job.members() if member["stopped"]]
            psutil.Process(paused["pid"]).kill()
            await job.until(lambda: bool(job.of("terminated")))
            states = {member["id"]: member["state"] for member in await job.members() if member["role"] == "rank"}
            assert states.pop(paused["id"]) == "crashed"
            assert set(states.values()) <= {"exited", "lost"}
        finally:
            await job.close()

    asyncio.run(case())


def test_the_hub_is_killed_and_a_paused_rank_runs_on(tmp_path: Path) -> None:
    done = tmp_path / "done"
    command = ("sh", "-c", f'"{sys.executable}" plain_ranks.py > "{done}.log" 2>&1 && touch "{done}"')

    async def case() -> None:
        job = await session(command, point("plain_ranks.py", "step", "True  # @1"))
        await job.until_stops(1)
        pids = [member["pid"] for member in await job.members()]
        [hub] = [p for p in psutil.Process().children() if "rankscope.hub" in p.cmdline()]
        hub.kill()
        until(done.exists, "the job ran to its end")
        assert not any(is_running(pid) for pid in pids)
        await job.close()

    asyncio.run(case())
