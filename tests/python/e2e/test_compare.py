"""One expression over real ranks: numbers, tensors, a DTensor, what blocks and what must not be started."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from support.hub_session import Body, HubSession
from support.runs import JOBS, environment, line_of, python

gloo = pytest.mark.torch
slow = pytest.mark.slow
FILE = "compare_ranks.py"
PROGRAM = str(JOBS / FILE)


@contextlib.asynccontextmanager
async def stopped(ranks: str, count: int) -> AsyncIterator[HubSession]:
    """The job, with these ranks at its first step."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4", PROGRAM]
    point = {"line": line_of(FILE, "step"), "condition": f"True  # @{ranks}"}
    job = await HubSession.launch(torchrun, environment(), {PROGRAM: [point]}, cwd=str(JOBS))
    try:
        await job.until_stops(count)
        yield job
    finally:
        await job.close()


def run(case: Callable[[HubSession], Awaitable[None]], ranks: str = "all", count: int = 4) -> None:
    async def work() -> None:
        async with stopped(ranks, count) as job:
            await case(job)

    asyncio.run(asyncio.wait_for(work(), 110))


async def compared(job: HubSession, expression: str, **more: Any) -> Body:
    return await job.request("rankscope/compare", expression=expression, **more)


def texts(body: Body) -> dict[str, str]:
    """By the ranks of each group."""
    return {group["ranks"]: group["text"] for group in body["groups"]}


async def finishes(job: HubSession) -> None:
    """The ranks run on as if nothing had been asked."""
    await job.set_breakpoints(PROGRAM, [])
    await job.request("rankscope/control", action="continue", ranks="all")
    await job.until(lambda: bool(job.of("terminated")))
    results = sorted(line for line in job.output.splitlines() if line.startswith("RESULT"))
    assert results == [f"RESULT rank={rank} done" for rank in range(4)]
    assert "DEBUGGER WARNING" not in "".join(str(body.get("output")) for body in job.of("output"))


@gloo
@slow
def test_stopped_ranks_are_compared_and_run_on() -> None:
    async def case(job: HubSession) -> None:
        loss = await compared(job, "loss")
        assert texts(loss) == {"0-2": "0.25", "3": "nan"}
        assert (loss["stats"]["nan"], loss["stats"]["mean"]) == (1, 0.25)
        assert [row["frame"]["name"] for row in loss["rows"]] == ["train_step"] * 4
        assert loss["rows"][0]["frame"]["line"] == line_of(FILE, "step")

        console = await job.request("evaluate", expression="@all loss", context="repl")
        assert console["result"] == "0-2: 0.25\n3: nan"

        weight = await compared(job, "weight", withDelta=True, ranks="0-5")
        assert [group["ranks"] for group in weight["groups"]] == ["0,1,3", "2"]
        assert weight["absent"] == "4,5"
        tensor = weight["rows"][2]["tensor"]
        assert (tensor["shape"], tensor["min"], tensor["nan"]) == ([3, 4], -5.0, 0)
        deltas = {row["rank"]: row.get("delta") for row in weight["rows"]}
        assert deltas[0] is None
        assert deltas[1] == deltas[3] == {"max": 0.0, "mean": 0.0, "index": None, "nan": 0, "note": None}
        assert (deltas[2]["max"], deltas[2]["index"]) == (11.0, [1, 2])

        scalar = await compared(job, "weight.norm()")
        assert texts(scalar) == {"0,1,3": "22.4944439", "2": "22.2485962"}
        assert {row["kind"] for row in scalar["rows"]} == {"number"}

        uneven = await compared(job, "1 / (number - rank + 2)")
        assert texts(uneven)["2"] == "ZeroDivisionError: division by zero"
        assert uneven["rows"][0]["value"] == 0.5
        await finishes(job)

    run(case)


@gloo
@slow
def test_a_dtensor_is_its_local_shard_no_collective_starts_and_what_blocks_holds_no_rank() -> None:
    async def case(job: HubSession) -> None:
        shard = await compared(job, "shard")
        told = [(row["tensor"]["shape"], row["tensor"]["local"], row["tensor"]["max"]) for row in shard["rows"]]
        assert told == [([8], [2], float(2 * rank + 1)) for rank in range(4)]
        for expression in (
            "shard.full_tensor()",
            "shard.sum().full_tensor()",
            "dist.all_reduce(weight)",
            "dist.barrier()",
            "dist.new_group([0])",
            "torch.distributed.all_gather_object([None] * 4, 1)",
            "dist.group.WORLD.allreduce([weight]).wait()",
        ):
            body = await compared(job, expression, ranks="1")
            [row] = body["rows"]
            assert row["kind"] == "error", expression
            assert row["text"].startswith("CollectiveRefusedError: an expression must start no collective")
        assert texts(await compared(job, "dist.get_rank()")) == {str(rank): str(rank) for rank in range(4)}

        body = await compared(job, "rank < 2 or never.wait()", timeout=0.5)
        assert texts(body) == {"0,1": "True", "2,3": "not evaluated within 0.5 s; it was told to stop"}
        assert body["late"] == ["world 2", "world 3"]
        assert body["warning"] == "each rank has called wait: what that changed stays changed"
        assert texts(await compared(job, "number")) == {"0-3": "0"}
        await finishes(job)

    run(case)


@gloo
@slow
def test_running_ranks_are_looked_into_without_being_stopped() -> None:
    async def case(job: HubSession) -> None:
        await job.until_members(lambda members: any(m["rank"] == 3 and m["state"] == "running" for m in members))
        while (body := await compared(job, "number"))["rows"][3]["kind"] != "number":
            assert body["rows"][3]["kind"] == "running"  # it is on its way to the barrier
        assert texts(body) == {"0-3": "0"}
        assert body["rows"][3]["state"] == "running"
        assert texts(await compared(job, "model.name")) == {"0-3": "'small'"}
        assert texts(await compared(job, "number + 1")) == {"0-2": "1", "3": "in barrier"}
        thread = job.of("stopped")[0]["threadId"]
        frame = await job.top_frame(thread)
        body = await compared(job, "loss", frameId=frame["id"])
        assert texts(body) == {"0-2": "0.25", "3": "in barrier, not in train_step"}
        assert not [member for member in await job.members() if member["rank"] == 3 and member["stopped"]]
        await finishes(job)

    run(case, ranks="0-2", count=3)


def test_ranks_without_torch_on_every_python() -> None:
    file = str(JOBS / "plain_ranks.py")

    async def work() -> None:
        point = {"line": line_of("plain_ranks.py", "step"), "condition": "step == 0  # @0-2"}
        job = await HubSession.launch(python("plain_ranks.py", "4"), environment(), {file: [point]}, cwd=str(JOBS))
        try:
            await job.until_stops(3)
            assert texts(await compared(job, "loss - rank", ranks="0-2")) == {"0-2": "10.0"}
            assert texts(await compared(job, "[n for n in iter(int, 1)]", ranks="0", timeout=0.3)) == {
                "0": "not evaluated within 0.3 s; it was told to stop"
            }
            frame = await job.top_frame(job.of("stopped")[0]["threadId"])
            console = await job.request("evaluate", expression="@0-2 rank > 0", context="repl", frameId=frame["id"])
            assert console["result"] == "1,2: True\n0: False"
            await job.set_breakpoints(file, [])
            await job.request("rankscope/control", action="continue", ranks="all")
            await job.until(lambda: bool(job.of("terminated")))
            assert "RESULT launcher done" in job.output
            assert "DEBUGGER WARNING" not in str(job.events)
        finally:
            await job.close()

    asyncio.run(asyncio.wait_for(work(), 110))
