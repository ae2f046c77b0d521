"""Where a process stands: the person's own frame, and the blocking call in it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from support.small_hub import SmallHub

SETUP = """
import concurrent.futures, json, multiprocessing, os, queue, re, subprocess, sys, threading, time
event, pipe = threading.Event(), multiprocessing.Pipe()
def ready():
    print("ready", flush=True)
"""


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


def stands(folder: Path, source: str, accept: Any) -> dict[str, Any] | None:
    """Where a program stands once that is as wished."""
    program = folder / "program.py"
    program.write_text(SETUP + source)
    found: list[dict[str, Any] | None] = []

    async def work() -> None:
        async with SmallHub(folder) as hub:
            process = await hub.start(str(program))
            assert process.stdout is not None
            while (await process.stdout.readline()).strip() != b"ready":
                pass
            member = next(iter(hub.fleet.members.values()))
            while True:
                frame = (await member.ask("top", {}))["frame"]
                if accept(frame):
                    break
            found.append(frame)

    run(work())
    return found[0]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("event.wait()", "threading.Event.wait"),
        ("queue.Queue().get()", "queue.Queue.get"),
        ("subprocess.Popen(['cat'], stdin=-1).wait()", "subprocess.Popen.wait"),
        ("pipe[0].recv()", "multiprocessing.connection._ConnectionBase.recv"),
        ("concurrent.futures.Future().result()", "concurrent.futures.Future.result"),
        ("time.sleep(60)", ""),
        ("re.sub('a', lambda _: time.sleep(60), 'a')", ""),
    ],
)
def test_the_blocking_call_of_the_own_frame(tmp_path: Path, call: str, name: str) -> None:
    source = f"def step():\n    ready()\n    {call}  # here\nstep()\n"
    frame = stands(
        tmp_path, source, lambda frame: frame and frame["name"] in ("step", "<lambda>") and (frame["call"] or not name)
    )
    assert frame is not None
    lines = (tmp_path / "program.py").read_text().splitlines()
    here = next(number for number, line in enumerate(lines, 1) if line.endswith("# here"))
    without_class = f"{name.rpartition('.')[0].rpartition('.')[0]}.{name.rpartition('.')[2]}".strip(".")
    assert frame["path"] == str(tmp_path / "program.py")
    assert frame["call"] in (name, without_class)  # Python 3.10 does not know the class
    assert here - 1 <= frame["line"] <= here


SERVE = "def serve(ready):\n    ready()\n    import threading\n    threading.Event().wait()\n"
IN_A_THREAD = "import helper\nthreading.Thread(target=helper.serve, args=(ready,), daemon=True).start()\n"
# The main thread is past the program.
AFTERWARDS = "import atexit\natexit.register(event.wait)\n"


def test_the_main_thread_comes_first_where_it_runs_own_code(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(SERVE)
    frame = stands(tmp_path, IN_A_THREAD + "event.wait()\n", lambda frame: frame and frame["call"])
    assert frame is not None and frame["name"] == "<module>"


def test_else_a_thread_that_does(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(SERVE)
    frame = stands(tmp_path, IN_A_THREAD + AFTERWARDS, lambda frame: frame and frame["name"] == "serve")
    assert frame is not None and frame["path"] == str(tmp_path / "helper.py")


def test_nobodys_code_is_none(tmp_path: Path) -> None:
    assert stands(tmp_path, AFTERWARDS + "ready()\n", lambda frame: frame is None) is None


@pytest.mark.torch
@pytest.mark.parametrize(
    ("call", "name"),
    [("dist.barrier()", "barrier"), ("dist.all_reduce(torch.zeros(1))", "all_reduce")],
)
def test_a_collective_is_named_as_it_is_written(tmp_path: Path, call: str, name: str) -> None:
    pytest.importorskip("torch")
    source = f"""
import torch, torch.distributed as dist
where = "file://{tmp_path}/store"
def rank(number):
    dist.init_process_group("gloo", init_method=where, rank=number, world_size=2)
    if number == 0:
        ready()
        {call}
    event.wait()
if __name__ == "__main__":
    other = os.fork()
    if other == 0:
        sys.stdout = open(os.devnull, "w")
        import ctypes
        ctypes.CDLL(None).prctl(1, 9)  # ends with its parent
    rank(1 if other == 0 else 0)
"""
    frame = stands(tmp_path, source, lambda frame: frame and frame["call"] == name)
    assert frame is not None and frame["name"] == "rank"
