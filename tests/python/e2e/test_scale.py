"""A real hub with hundreds of (simulated) ranks: one session presents them all, and stays right."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from rankscope.hub import open_files
from support.dap_client import FakeEditor, Session
from support.simulated_ranks import connect_world
from support.small_hub import SmallHub

PROGRAM = Path(__file__).parents[1] / "support" / "simulated_ranks.py"


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 100))


async def presents(session: Session, count: int, threads: int) -> None:
    """So many threads were told of, are listed, each by the name of its rank, and can be looked into."""
    await session.until(lambda: sum(event == "thread" for event, _ in session.events) >= threads, "every thread")
    listed = (await session.request("threads"))["threads"]
    assert len(listed) == threads
    assert len({thread["id"] for thread in listed}) == threads
    names = {thread["name"].partition(" · node")[0] for thread in listed}
    assert {f"world {rank}" for rank in range(count)} <= names
    last = next(thread for thread in listed if thread["name"].startswith(f"world {count - 1} "))
    assert await session.request("stackTrace", {"threadId": last["id"]})


@pytest.mark.parametrize("sessions", ["single", "perGroup", "auto"])
def test_one_session_presents_256_ranks(sessions: str) -> None:
    async def work() -> None:
        async with FakeEditor() as editor:
            await editor.launch(command=[sys.executable, str(PROGRAM), "256"], cwd="/", sessions=sessions)
            await editor.root.until(lambda: "joined" in editor.output, "joining")
            if sessions == "single":
                await presents(editor.root, 256, 257)  # and the driver
            else:
                await editor.root.until(lambda: "world/all" in editor.children, "the group's session")
                await presents(editor.children["world/all"], 256, 256)
            frames = await editor.root.request("rankscope/frames", {})
            assert len(frames["frames"]) == 257 and not frames["late"]

    run(work())


def test_the_stacks_of_a_thousand_ranks_are_one_tree() -> None:
    async def work() -> None:
        async with FakeEditor() as editor:
            await editor.launch(command=[sys.executable, str(PROGRAM), "1024"], cwd="/", sessions="single")
            await editor.root.until(lambda: "joined" in editor.output, "joining")
            answer = await editor.root.request("rankscope/stacks", {"ranks": "all"})
            assert (answer["count"], answer["late"], answer["failed"]) == (1024, [], {})
            tree = answer["tree"]
            assert tree["ranks"] == "0-1023"
            main = tree["children"][0]["children"][0]
            outliers = [child["ranks"] for child in main["children"][:3]]
            assert sorted(outliers, key=int) == ["1", "512", "1023"]
            assert main["children"][-1]["ranks"].endswith(":32"), "a stride"
            assert sum(len(child["members"]) for child in main["children"]) == 1024

    run(work())


def test_progress_of_a_thousand_joins_is_told_now_and_then() -> None:
    async def work() -> None:
        async with FakeEditor() as editor:
            await editor.launch(command=[sys.executable, str(PROGRAM), "1024"], cwd="/", sessions="single")
            end = await editor.root.wait_for("progressEnd")
            assert end["message"] == "1024 of 1024 ranks joined"
            assert sum(event == "progressUpdate" for event, _ in editor.root.events) < 512

    run(work())


def test_more_ranks_than_open_files_are_allowed_at_first(tmp_path: Path) -> None:
    limited = tmp_path / "python"
    limited.write_text(f'#!/bin/sh\nulimit -Sn 200\nexec {sys.executable} "$@"\n')
    limited.chmod(0o755)
    job = f"ulimit -Sn; ulimit -Sn 1000; exec {sys.executable} {PROGRAM} 300"

    async def work() -> None:
        async with FakeEditor(python=str(limited)) as editor:
            await editor.launch(command=["/bin/sh", "-c", job], cwd="/", sessions="single")
            await editor.root.until(lambda: "joined" in editor.output, "joining")
            assert editor.output.startswith("200\n"), "the job has the limit that it would have without us"

    run(work())


def test_a_hub_that_cannot_hold_more_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def work() -> None:
        async with SmallHub(tmp_path) as hub:
            ranks = await connect_world(hub.endpoint, 8)
            assert [text for text in hub.heard if "ulimit" in text] == [
                "5 processes have joined, no more can: the hub may not open more files (`ulimit -n`)"
            ]
            for rank in ranks:
                rank.close()

    monkeypatch.setattr(open_files, "room", lambda: 5)
    run(work())
