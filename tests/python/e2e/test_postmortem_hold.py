"""A failing rank is held where it raised: armed on the spot, for a while, and failing as it would have after."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.dap_client import FakeEditor, Stop
from support.kept import job
from support.runs import line_of

FAILS = "fails.py"
UNCAUGHT = {"filters": ["uncaught"]}
NOTHING: dict[str, Any] = {"filters": []}


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 90))


async def launch(editor: FakeEditor, folder: Path, how: str = "raise", where: str = "rank", **more: Any) -> None:
    settings = {"program": job(FAILS), "args": [how, where], "cwd": str(folder), "sessions": "single", **more}
    await editor.launch(**settings)


async def held(editor: FakeEditor, how: str = "raise") -> Stop:
    stop = await editor.wait_for_stop()
    assert stop.reason == "exception"
    frames = await stop.stack()
    assert (frames[0]["name"], frames[0]["line"]) == ("die", line_of(FAILS, how))
    return stop


@pytest.mark.parametrize(
    ("filters", "settings"),
    [
        (UNCAUGHT, {}),
        (NOTHING, {"postMortem": "pause"}),
        (NOTHING, {"env": {"RAY_DEBUG_POST_MORTEM": "1"}}),
    ],
    ids=["filter", "setting", "variable"],
)
def test_a_dormant_rank_is_held_where_it_raised(
    tmp_path: Path, filters: dict[str, Any], settings: dict[str, Any]
) -> None:
    async def work() -> None:
        async with FakeEditor() as editor:
            editor.filters = filters
            await launch(editor, tmp_path, **settings)
            stop = await held(editor)
            variables = await stop.local_variables()
            assert (variables["loss"], variables["how"]) == ("3.5", "'raise'")
            assert await stop.evaluate("batch.index + 1") == "8"
            info = await stop.session.request("exceptionInfo", {"threadId": stop.thread})
            assert info["exceptionId"].rpartition(".")[2] == "ValueError"
            assert info["description"] == "bad batch 7"
            [rank] = [member for member in await editor.members() if member["role"] == "rank"]
            assert rank["state"] == "paused" and 1700 < rank["heldSeconds"] <= 1800
            assert [m["heldSeconds"] for m in await editor.members() if m["role"] == "driver"] == [None]
            await stop.resume()
            assert await editor.exit_code() == 0
            assert "ValueError: bad batch 7" in editor.output
            assert "RESULT rank ended with 1" in editor.output
            assert "rankscope" not in editor.output.partition("Traceback")[2].partition("ValueError")[0]

    run(work())


def test_the_caught_part_of_a_chain_is_not_where_it_is_held(tmp_path: Path) -> None:
    async def work() -> None:
        async with FakeEditor() as editor:
            editor.filters = UNCAUGHT
            await launch(editor, tmp_path, "chain")
            stop = await held(editor, "chain")
            await stop.resume()
            assert await editor.exit_code() == 0

    run(work())


def test_nobody_is_held_longer_than_the_limit(tmp_path: Path) -> None:
    async def work() -> None:
        async with FakeEditor() as editor:
            await launch(editor, tmp_path, postMortem="pause", postMortemTimeout=1)
            await held(editor)
            assert await editor.exit_code() == 0
            assert "was held for 1 s after its failure and runs on" in editor.output
            assert "RESULT rank ended with 1" in editor.output

    run(work())


def test_a_filter_for_other_ranks_or_other_exceptions_holds_nobody(tmp_path: Path) -> None:
    async def work() -> None:
        async with FakeEditor() as editor:
            editor.filters = {"filters": [], "filterOptions": [{"filterId": "uncaught", "condition": "KeyError  # @2"}]}
            await launch(editor, tmp_path)
            assert await editor.exit_code() == 0
            assert not [body for event, body in editor.root.events if event == "stopped"]

    run(work())


def test_stopping_while_it_is_held_leaves_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with FakeEditor() as editor:
            await launch(editor, tmp_path, postMortem="pause")
            await held(editor)
            processes = [psutil.Process(member["pid"]) for member in await editor.members()]
            started = time.monotonic()
            await editor.root.request("terminate")
            await editor.root.wait_for("terminated")
            assert time.monotonic() - started < 8
            assert psutil.wait_procs(processes, timeout=5)[1] == []

    run(work())


def test_an_editor_that_goes_lets_the_held_one_fail(tmp_path: Path) -> None:
    async def work() -> None:
        async with FakeEditor() as editor:
            await launch(editor, tmp_path, postMortem="pause")
            await held(editor)
            processes = [psutil.Process(member["pid"]) for member in await editor.members()]
            await editor.root.request("disconnect", {"terminateDebuggee": False})
            assert psutil.wait_procs(processes, timeout=15)[1] == []

    run(work())


def test_the_hub_is_killed_while_it_is_held_and_the_job_fails_as_it_would_have(tmp_path: Path) -> None:
    async def work() -> None:
        async with FakeEditor() as editor:
            await launch(editor, tmp_path, postMortem="pause", releaseAfter=1)
            await held(editor)
            processes = [psutil.Process(member["pid"]) for member in await editor.members()]
            os.kill(editor.hub.pid, signal.SIGKILL)
            await editor.hub.wait()
            _, alive = psutil.wait_procs(processes, timeout=15)
            assert alive == []

    run(work())


def test_a_finding_is_told_to_our_extension_alone(tmp_path: Path) -> None:
    async def findings(**mark: Any) -> list[dict[str, Any]]:
        async with FakeEditor() as editor:
            await launch(editor, tmp_path, **mark)
            assert await editor.exit_code() == 0
            return [body for event, body in editor.root.events if event == "rankscope/finding"]

    async def work() -> None:
        assert await findings() == []
        [finding] = await findings(__extension={"version": "0"})
        assert Path(finding.pop("record"), "findings.msgpack").exists()
        told = {
            key: finding[key] for key in ("kind", "severity", "path", "line", "text", "label", "isFirst", "episode")
        }
        assert told == {
            "kind": "crash",
            "severity": "error",
            "path": job(FAILS),
            "line": line_of(FAILS, "raise"),
            "text": "ValueError: bad batch 7",
            "label": "world 2",
            "isFirst": True,
            "episode": 1,
        }

    run(work())
