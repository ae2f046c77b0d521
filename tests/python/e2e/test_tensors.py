"""Tensors in Variables, hover and console of a real job, by the debugpy in it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest

from support.hub_session import HubSession
from support.runs import JOBS, environment, plain, point, program, python

pytestmark = [pytest.mark.slow, pytest.mark.torch]

GIGABYTE = 1 << 28  # elements of four bytes


class Shown:
    """What a session shows of one stopped frame."""

    def __init__(self, session: HubSession, frame: int) -> None:
        self.session = session
        self.frame = frame

    @classmethod
    async def at_the_stop(cls, session: HubSession) -> Shown:
        stop = (await session.until_stops(1))[0]
        return cls(session, int((await session.top_frame(stop["threadId"]))["id"]))

    async def variables(self) -> dict[str, dict[str, Any]]:
        scopes = (await self.session.request("scopes", frameId=self.frame))["scopes"]
        return await self.unfold(scopes[0])

    async def unfold(self, holder: dict[str, Any], *path: str) -> dict[str, dict[str, Any]]:
        """What stands below a variable, or below one of its parts."""
        body = await self.session.request("variables", variablesReference=holder["variablesReference"])
        parts = {str(part["name"]): part for part in body["variables"]}
        return await self.unfold(parts[path[0]], *path[1:]) if path else parts

    async def evaluate(self, expression: str, context: str) -> str:
        body = await self.session.request("evaluate", expression=expression, frameId=self.frame, context=context)
        return str(body["result"])


def test_a_script_with_a_gigabyte() -> None:
    """P14: a huge tensor neither hangs nor floods the view, in its list, in a hover, or in the console."""

    async def case() -> None:
        command = python(str(JOBS / "tensors.py"), str(GIGABYTE))
        session = await HubSession.launch(command, environment(), point("tensors.py", "shown", "True"), ranks="driver")
        try:
            shown = await Shown.at_the_stop(session)
            variables = await shown.variables()
            huge = variables["gigabyte"]["value"]
            assert huge.startswith("Tensor 268435456 float32 cpu · min 0 max ")
            assert {name: variables[name]["value"] for name in LINES} == LINES
            for context in ("hover", "watch", "repl", "clipboard"):
                text = await shown.evaluate("gigabyte", context)
                assert text == "Tensor 268435456 float32 cpu · min 0 max 2.684e+08 mean 1.342e+08 · NaN 0 Inf 0"
            assert await shown.evaluate("[weights] * 2", "repl") == "[Tensor 300×40 bf16 cpu, Tensor 300×40 bf16 cpu]"

            pages = await shown.unfold(variables["gigabyte"])
            assert len(pages) < 120
            path = ("[100000000:200000000]", "[123000000:124000000]", "[123450000:123460000]", "[123456700:123456800]")
            row = (await shown.unfold(variables["gigabyte"], *path))["[123456789]"]
            assert (row["value"], row["evaluateName"]) == ("123456792.0", "gigabyte[123456789]")
            assert await shown.evaluate(row["evaluateName"], "watch") == "Tensor scalar float32 cpu · 1.23457e+08"

            weights = await shown.unfold(variables["weights"])
            assert list(weights)[:6] == ["shape", "dtype", "device", "requires_grad", "grad_fn", "grad"]
            assert list(weights)[-2:] == ["[100:200]", "[200:300]"]
            assert weights["[7]"]["value"].startswith("Tensor 40 bf16 cpu · min 1 max 1")
            await session.request("rankscope/control", action="continue", scope="session")
            await session.until(lambda: bool(session.of("exited")))
            shown_results = [line for line in session.output.splitlines() if line.startswith("RESULT")]
            assert shown_results == plain(*command).results
            assert "code of a person's" not in session.output
            said = "".join(str(body.get("output")) for body in session.of("output"))
            assert "pydevd warning" not in said
        finally:
            await session.close()

    asyncio.run(case())


LINES = {
    "weights": "Tensor 300×40 bf16 cpu · min 1 max 1 mean 1 · NaN 0 Inf 0",
    "spoiled": "Tensor 4 float32 cpu · min −2 max 1 mean −0.5 · NaN 1 Inf 1 · [1, nan, inf, -2]",
    "loss": "Tensor scalar float32 cpu · 0.25",
    "loud": "Loud 4 float32 cpu · min 0 max 3 mean 1.5 · NaN 0 Inf 0 · [0, 1, 2, 3]",
    "array": "ndarray 3×4 float64 · min 0 max 11 mean 5.5 · NaN 0 Inf 0",
    "table": "DataFrame 3×2: step int64, loss float64",
    "entries": "TensorDict 4: ids 4×8 int64, mask 4×8 bool",
    "proto": "DataProto 4 · batch: ids 4×8 int64, mask 4×8 bool · non-tensor: uid · meta: temperature",
    "held": "[Tensor 268435456 float32 cpu, Tensor 300×40 bf16 cpu]",
    "named": "{'weights': Tensor 300×40 bf16 cpu, 'rest': (1, 'two')}",
    "batch": "Batch(ids=Tensor 4×8 int64 cpu, name='first')",
    "pair": "Pair(left=Tensor scalar float32 cpu, right=1)",
    "top": "max(Tensor 4 float32 cpu, Tensor 4 int64 cpu)",
    "plain": "{'a': [1, 2]}",
}


def test_a_distributed_tensor_while_the_other_rank_is_elsewhere() -> None:
    """Only the local shard is looked at: a word to the other rank, which waits in a collective, would never end."""

    async def case() -> None:
        command: Sequence[str] = (program("torchrun"), "--standalone", "--nproc-per-node", "2", "dtensor_train.py")
        points = point("dtensor_train.py", "sharded", "True  # @0")
        session = await HubSession.launch(command, environment(), points, cwd=str(JOBS))
        try:
            shown = await Shown.at_the_stop(session)
            began = time.monotonic()
            variables = await shown.variables()
            line = "DTensor 8×10 float32 cpu · Shard(0) on dp 2 · local 4×10 · min 0 max 39 mean 19.5 · NaN 0 Inf 0"
            assert variables["weights"]["value"] == line
            assert variables["parameter"]["value"] == line
            whole = variables["whole"]["value"]
            assert whole.startswith("DTensor 4 float32 cpu · Replicate on dp 2 · local 4 · min 1")
            assert await shown.evaluate("weights", "repl") == line
            parts = await shown.unfold(variables["weights"])
            assert {"shape", "placements", "device_mesh", "local shard"} <= parts.keys()
            rows = await shown.unfold(variables["weights"], "local shard")
            assert rows["[3]"]["value"].startswith("Tensor 10 float32 cpu · min 30 max 39")
            assert time.monotonic() - began < 30  # far below any collective's time-out
            await session.request("rankscope/control", action="continue", scope="session")
            await session.until(lambda: bool(session.of("exited")))
            results = [line for line in session.output.splitlines() if line.startswith("RESULT")]
            assert sorted(results) == plain(*command, cwd=JOBS).results
        finally:
            await session.close()

    asyncio.run(case())


@pytest.mark.ray
def test_a_worker_of_a_ray_job() -> None:
    """The plugin is where the agent is, however it came there."""

    async def case() -> None:
        points = point("ray_actors.py", "step", "True  # @1")
        session = await HubSession.launch(python("ray_actors.py"), environment(), points, cwd=str(JOBS))
        try:
            shown = await Shown.at_the_stop(session)
            assert await shown.evaluate("__import__('torch').ones(9)", "repl") == (
                "Tensor 9 float32 cpu · min 1 max 1 mean 1 · NaN 0 Inf 0"
            )
        finally:
            await session.close()

    asyncio.run(case())
