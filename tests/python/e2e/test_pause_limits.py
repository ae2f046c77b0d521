"""P13: a pause that would fail the job is named while there is time, and what can be raised has been."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from support.hub_session import Body, HubSession
from support.runs import JOBS, environment, plain, point, program, python

pytestmark = pytest.mark.slow


def free_port() -> str:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def results(output: str) -> list[str]:
    return sorted(line for line in output.splitlines() if "RESULT" in line)


def session(
    command: tuple[str, ...], breakpoints: dict[str, list[Body]], **settings: Any
) -> Coroutine[Any, Any, HubSession]:
    return HubSession.launch(command, environment(), breakpoints, cwd=str(JOBS), **settings)


async def until_limit(job: HubSession, is_it: Callable[[Body], Any]) -> Body:
    """The first told limit that is as wished."""

    def found() -> list[Body]:
        bodies = job.of("rankscope/ranksChanged")
        return [limit for body in bodies for limit in body.get("limits", []) if is_it(limit)]

    await job.until(lambda: bool(found()))
    return found()[0]


async def to_its_end(job: HubSession) -> int:
    """Let everybody go on; the exit code."""
    await job.request("rankscope/control", action="continue", scope="stopped")
    await job.until(lambda: bool(job.of("terminated")))
    code: int = job.of("exited")[0]["exitCode"]
    return code


def said(job: HubSession) -> str:
    return "".join(body.get("output", "") for body in job.of("output") if body.get("category") != "stdout")


@pytest.mark.ray
def test_p13_the_drivers_ray_get_is_counted_down_while_an_actor_is_paused() -> None:
    async def case() -> None:
        job = await session(python("ray_get_timeout.py", "100"), point("ray_get_timeout.py", "step", "True  # @all"))
        try:
            await job.until_stops(1)
            limit = await until_limit(job, lambda limit: "ray.get" in limit["what"])
            assert limit["what"] == "ray.get(timeout=100)"
            assert limit["label"] == "driver ray_get_timeout.py"
            assert 40 < limit["secondsLeft"] < 100
            assert limit["text"].startswith("ray.get(timeout=100) of driver ray_get_timeout.py ends in ")
            assert await to_its_end(job) == 0
            assert "limits" not in (await job.request("rankscope/ranks"))
            assert results(job.output) == plain(*python("ray_get_timeout.py", "100")).results
            for who in ("driver", "worker"):
                assert f"ENV {who} TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=604800" in job.output
                assert f"ENV {who} RAY_CGRAPH_get_timeout=604800" in job.output
            assert "ran out" not in said(job)
        finally:
            await job.close()

    asyncio.run(case())


@pytest.mark.ray
def test_p13_a_pause_that_was_too_long_is_said_to_be_why_the_driver_failed() -> None:
    async def case() -> None:
        command = python("ray_get_timeout.py", "15")
        job = await session(command, point("ray_get_timeout.py", "step", "True  # @all"), raiseTimeouts=False)
        try:
            await job.until_stops(1)
            await until_limit(job, lambda limit: limit["what"] == "ray.get(timeout=15)")
            await job.until(lambda: "ran out" in said(job))
            assert "ray.get(timeout=15) of driver ray_get_timeout.py ends in" in said(job)
            assert "ray.get(timeout=15) of driver ray_get_timeout.py ran out (paused: Worker 0)" in said(job)
            assert "ENV driver TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=None" in job.output  # nothing is raised
            await job.until(lambda: bool(job.of("terminated")))
            assert job.of("exited")[0]["exitCode"] == 1
        finally:
            await job.close()

    asyncio.run(case())


@pytest.mark.torch
def test_p13_a_wait_on_a_store_is_named_while_the_rank_that_is_to_set_it_is_paused() -> None:
    torchrun = (program("torchrun"), "--standalone", "--nproc-per-node", "2", "store_wait.py")

    async def case() -> None:
        job = await session(torchrun, point("store_wait.py", "set", "True  # @1"))
        try:
            await job.until_stops(1)
            limit = await until_limit(job, lambda limit: "store.wait" in limit["what"])
            assert (limit["what"], limit["label"]) == ("store.wait(timeout=90)", "world 0")
            # It has begun before the stop, or after it: then its end is known.
            assert limit["secondsLeft"] is None or 40 < limit["secondsLeft"] <= 90
            assert await to_its_end(job) == 0
            assert results(job.output) == plain(*torchrun).results
        finally:
            await job.close()

    asyncio.run(case())


@pytest.mark.torch
@pytest.mark.parametrize("raised", [True, False], ids=["raised", "not raised"])
def test_p13_torchruns_exit_barrier_and_keep_alive_are_named(raised: bool) -> None:
    command = ("sh", "two_agents.sh", free_port())
    points = point("two_agents.py", "result", "True  # @1")

    async def case() -> None:
        job = await session(command, points, raiseTimeouts=raised, justMyCode=False)
        try:
            await job.until_stops(1)
            barrier = await until_limit(job, lambda limit: "exit barrier" in limit["what"])
            assert barrier["what"] == "torchrun's exit barrier(timeout=300)"
            assert 200 < barrier["secondsLeft"] <= 300
            waiting = barrier["member"]
            agents = [member for member in await job.members() if member["label"].startswith("driver torchrun")]
            [other] = [agent["id"] for agent in agents if agent["id"] != waiting]
            await job.request("rankscope/control", action="pause", members=[other])
            await job.until_stops(2)
            if not raised:
                alive = await until_limit(job, lambda limit: "keep-alive" in limit["what"])
                assert (alive["what"], alive["member"]) == ("torchrun's keep-alive(15)", other)
                assert alive["canRaise"]
                assert "keep_alive_max_attempt" in alive["text"]
                assert 0 < alive["secondsLeft"] <= 15
            assert await to_its_end(job) == 0
            told = [limit["what"] for body in job.of("rankscope/ranksChanged") for limit in body.get("limits", [])]
            assert any("keep-alive" in what for what in told) is not raised
            assert results(job.output) == ["RESULT rank=0 1", "RESULT rank=1 2"]
        finally:
            await job.close()

    asyncio.run(case())
