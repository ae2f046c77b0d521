"""Lines that run compiled: which they are, as the agent tells from torch's own bookkeeping."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.hub_session import HubSession
from support.runs import environment, python
from support.small_hub import SmallHub

pytestmark = pytest.mark.torch

JOB = """
import os, sys, threading
import torch

def inlined(x):
    return x * 2  # @bp inlined

def fails_inside(x):
    y = inlined(x)  # @bp a frame of its own
    print("breaks")  # @bp breaks
    return y

@torch.compile(backend="eager")
def broken(x):
    a = x + 1  # @bp before the break
    a = fails_inside(a)  # @bp the break
    return a * 3  # @bp after the break

class Model(torch.nn.Module):
    def forward(self, x):
        return inlined(x) - 1  # @bp forward

def plain(x):
    return x + 1  # @bp plain

@torch.compile(backend="eager")
def never(x):
    return x  # @bp never called

model = torch.compile(Model(), backend="eager")
broken(torch.ones(2))
model(torch.ones(2))
plain(torch.ones(2))
print("ready", flush=True)
while not os.path.exists(sys.argv[1]):
    model(torch.ones(2))
    threading.Event().wait(0.02)
print("RESULT", model(torch.ones(2)).tolist())
"""


def lines(program: Path) -> dict[str, int]:
    marked = (line.partition("# @bp ")[2].strip() for line in program.read_text().splitlines())
    return {mark: number for number, mark in enumerate(marked, 1) if mark}


def test_compiled_lines_are_told_from_others(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(JOB)
    marks = lines(program)

    async def work() -> None:
        async with SmallHub(tmp_path) as hub:
            process = await hub.start(str(program), str(tmp_path / "go_on"))
            assert process.stdout is not None
            while (await process.stdout.readline()).strip() != b"ready":
                pass
            member = next(iter(hub.fleet.members.values()))
            places = [[line, str(program), line] for line in marks.values()]
            answer = await member.ask("compiled", {"places": [*places, [999, "/absent.py", 3]]})
            assert {mark for mark, line in marks.items() if line in answer["compiled"]} == {
                "inlined",
                "a frame of its own",
                "before the break",
                "after the break",
                "forward",
            }

    asyncio.run(asyncio.wait_for(work(), 90))


def test_a_breakpoint_on_a_compiled_line_says_so(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(JOB)
    marks = lines(program)
    text = "this line runs compiled (torch.compile) on driver job.py; it cannot stop there"

    async def work() -> None:
        go_on = tmp_path / "go_on"
        points = [{"line": marks["inlined"]}, {"line": marks["plain"]}]
        session = await HubSession.launch(python("job.py", str(go_on)), environment(), cwd=str(tmp_path))
        try:
            await session.until(lambda: "ready" in session.output, 90)
            await session.set_breakpoints(program, points)
            await session.until(
                lambda: any(text in str(b["breakpoint"].get("message")) for b in session.of("breakpoint"))
            )
            inlined, plain = (await session.request("rankscope/breakpoints"))["breakpoints"]
            assert (inlined["error"], plain["error"]) == (text, "")
            assert not session.of("stopped")
            go_on.touch()
            await session.until(lambda: bool(session.of("terminated")))
        finally:
            await session.close()

    asyncio.run(asyncio.wait_for(work(), 120))
