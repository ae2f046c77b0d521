"""How ranks of real jobs end, and where they stand while they run, as the Ranks view has it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from support.hub_session import HubSession
from support.runs import environment, program

WITHOUT_A_WORD = "killed or ended without a word"

TORCHRUN = """
import os, torch.distributed as dist, torch
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    raise ValueError("bad batch")
while True:
    dist.all_reduce(torch.zeros(1))
"""

SPAWN = """
import threading, torch.multiprocessing as mp
def work(rank):
    if rank == 1:
        raise ValueError("bad batch")
    threading.Event().wait()
if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
"""

RAY = """
import os, ray
@ray.remote(num_cpus=0)
class Worker:
    def fail(self):
        raise ValueError("a method's own")
    def die(self):
        os._exit(3)
    def pid(self):
        return os.getpid()
ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
failing, dying, killed, fine = [Worker.remote() for _ in range(4)]
ray.get([worker.pid.remote() for worker in (failing, dying, killed, fine)])
for call in (failing.fail, dying.die):
    try:
        ray.get(call.remote())
    except ray.exceptions.RayError as e:
        print(type(e).__name__, flush=True)
ray.kill(killed)
print("RESULT", ray.get(fine.pid.remote()) > 0, ray.get(failing.pid.remote()) > 0)
"""

BLOCKED = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
def step():
    dist.all_reduce(torch.zeros(1))
while os.environ["RANK"] == "0" and not os.path.exists("go_on"):
    pass
step()
"""


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 100))


async def launch(folder: Path, source: str, *command: str) -> HubSession:
    (folder / "job.py").write_text(source)
    return await HubSession.launch([*command, "job.py"], environment(), cwd=str(folder))


def torchrun() -> list[str]:
    return [program("torchrun"), "--standalone", "--nproc-per-node", "2"]


async def endings(session: HubSession) -> dict[str, tuple[str, str]]:
    """Of each rank, once the job has ended."""
    await session.until(lambda: bool(session.of("terminated")), 90)
    members = await session.members()
    await session.close()
    return {m["label"]: (m["state"], m["ending"]) for m in members if m["role"] == "rank"}


@pytest.mark.torch
def test_torchrun_ends_the_others_when_one_fails(tmp_path: Path) -> None:
    async def work() -> None:
        found = await endings(await launch(tmp_path, TORCHRUN, *torchrun()))
        assert found["world 1"] == ("crashed", "ValueError: bad batch")
        assert found["world 0"][0] == "crashed"  # ended by torchrun, or by gloo's closed connection

    run(work())


@pytest.mark.torch
def test_a_spawned_rank_tells_what_torch_only_tells_its_parent(tmp_path: Path) -> None:
    async def work() -> None:
        found = await endings(await launch(tmp_path, SPAWN, sys.executable))
        assert found == {"spawn 0": ("crashed", "killed by SIGTERM"), "spawn 1": ("crashed", "ValueError: bad batch")}

    run(work())


@pytest.mark.ray
def test_a_ray_actor_crashes_with_its_process_only(tmp_path: Path) -> None:
    async def work() -> None:
        session = await launch(tmp_path, RAY, sys.executable)
        found = await endings(session)
        assert "RESULT True True" in session.output
        assert found == {
            "Worker 0": ("exited", ""),
            "Worker 1": ("crashed", WITHOUT_A_WORD),
            "Worker 2": ("exited", ""),
            "Worker 3": ("exited", ""),
        }

    run(work())


@pytest.mark.torch
def test_where_ranks_stand(tmp_path: Path) -> None:
    async def work() -> None:
        session = await launch(tmp_path, BLOCKED, *torchrun())

        async def stand() -> dict[str, Any]:
            labels = {m["id"]: m["label"] for m in await session.members()}
            frames = (await session.request("rankscope/frames"))["frames"]
            return {labels[name]: frame for name, frame in frames.items() if name in labels}

        def is_there(frame: dict[str, Any] | None, name: str, call: str) -> bool:
            return frame is not None and (frame["name"], frame["call"]) == (name, call)

        while not is_there((found := await stand()).get("world 1"), "step", "all_reduce"):
            await asyncio.sleep(0)  # the request itself waits
        assert (found["world 1"]["path"], found["world 1"]["line"]) == (str(tmp_path / "job.py"), 5)
        while not is_there((found := await stand())["world 0"], "<module>", ""):
            await asyncio.sleep(0)
        assert [frame for label, frame in found.items() if label.startswith("driver")] == [None]  # torchrun has none
        (tmp_path / "go_on").touch()
        assert (await endings(session))["world 1"] == ("exited", "")

    run(work())
