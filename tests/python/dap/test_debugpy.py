"""The front, the wanted table and the paths over the real hub, agent and debugpy; no torch, no Ray."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from support.dap_client import FakeEditor, line_of

MAIN = """\
import helper
import pkg


def risky(i):
    try:
        raise ValueError(i)  # @bp raise
    except ValueError:
        return i


def loop():
    total = 0
    for i in range(10):
        total += helper.double(i)  # @bp loop
        total += pkg.installed(i)
        total += risky(i)
    return total


print("RESULT", loop())
x = 1  # @bp after
x = 2
x = 3  # @bp last
"""
HELPER = "def double(x):\n    y = x * 2\n    return y  # @bp double\n"
INSTALLED = "def installed(x):\n    y = x + 1\n    return y  # @bp installed\n"
RANKS = """\
import os, subprocess, sys, threading

if len(sys.argv) == 1:
    ranks = [
        subprocess.Popen(
            [sys.executable, __file__, "rank"],
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "3", "LOCAL_RANK": str(rank)},
        )
        for rank in range(3)
    ]
    sys.exit(max(rank.wait() for rank in ranks))
rank = int(os.environ["RANK"])
steps = 0
while not os.path.exists(os.environ["GO_ON"]):
    steps += 1
    threading.Event().wait(0.01)  # @bp wait
sys.stdout.write(f"RESULT {rank}\\n")  # @bp end
"""


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 100))


def workspace(folder: Path) -> tuple[Path, Path]:
    """A workspace seen through a symlink, and a package that is installed elsewhere."""
    (folder / "real").mkdir()
    (folder / "link").symlink_to(folder / "real")
    package = folder / "lib" / "site-packages" / "pkg"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(INSTALLED)
    (folder / "real" / "helper.py").write_text(HELPER)
    (folder / "real" / "main.py").write_text(MAIN)
    return folder / "link", package / "__init__.py"


def test_one_process_through_a_symlink(tmp_path: Path) -> None:
    link, installed = workspace(tmp_path)
    main, helper = link / "main.py", link / "helper.py"

    async def work() -> None:
        path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(installed.parents[1])]).lstrip(os.pathsep)
        async with FakeEditor() as editor:
            await editor.set_breakpoints(main, {"mark": "loop", "condition": "i % 2 == 0", "hitCondition": "3"})
            await editor.set_breakpoints(helper, {"mark": "double", "condition": "x == 5"})
            await editor.launch(
                program=str(main), cwd=str(link), env={"PYTHONPATH": path}, workspaceFolder=str(link), stopOnEntry=True
            )
            stop = await editor.wait_for_stop()
            assert (stop.reason, await stop.line()) == ("entry", 1)
            await stop.resume()
            stop = await editor.wait_for_stop()
            assert await stop.evaluate("i") == "4", "the third time that the condition holds"
            assert {frame["source"]["path"] for frame in await stop.stack()} == {str(main)}
            # Into an installed package while stopped: debugpy gets a rule for it without letting the rank go.
            (answer,) = await editor.set_breakpoints(installed, "installed")
            assert answer["verified"], answer
            await stop.resume()
            stop = await editor.wait_for_stop()
            assert (await stop.stack())[0]["source"]["path"] == str(installed)
            assert (await stop.local_variables())["y"] == "5"
            await editor.set_breakpoints(installed)
            await stop.resume()
            stop = await editor.wait_for_stop()
            assert (await stop.stack())[0]["source"]["path"] == str(helper)
            await editor.set_breakpoints(helper)
            await editor.set_breakpoints(main, "after")
            options = [{"filterId": "raised", "condition": "KeyError, ValueError"}]
            await editor.root.request("setExceptionBreakpoints", {"filters": [], "filterOptions": options})
            await stop.resume()
            stop = await editor.wait_for_stop()
            assert (stop.reason, await stop.line()) == ("exception", line_of(main, "raise"))
            info = await stop.session.request("exceptionInfo", {"threadId": stop.thread})
            assert info["exceptionId"] == "ValueError"
            await editor.root.request("setExceptionBreakpoints", {"filters": []})
            functions = [{"name": "risky", "condition": "i == 8"}]
            await editor.root.request("setFunctionBreakpoints", {"breakpoints": functions})
            await stop.resume()
            stop = await editor.wait_for_stop()
            assert stop.reason == "function breakpoint"
            assert await stop.evaluate("i") == "8"
            await editor.root.request("setFunctionBreakpoints", {"breakpoints": []})
            await stop.resume()
            stop = await editor.wait_for_stop()
            assert await stop.line() == line_of(main, "after")
            target = {"source": {"path": str(main)}, "line": line_of(main, "last")}
            goto = (await stop.session.request("gotoTargets", target))["targets"][0]["id"]
            await stop.session.request("goto", {"threadId": stop.thread, "targetId": goto})
            stop = await editor.wait_for_stop()
            assert await stop.line() == line_of(main, "last")
            await stop.evaluate("x = 41", "repl")
            assert await stop.evaluate("x + 1") == "42"
            await editor.set_breakpoints(main)
            await stop.resume()
            assert await editor.exit_code() == 0
            assert "RESULT 190" in editor.output

    run(work())


def test_ranks_stop_one_by_one_and_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ranks.py"
    program.write_text(RANKS)
    go_on = tmp_path / "go_on"
    monkeypatch.setenv("GO_ON", str(go_on))

    async def work() -> None:
        async with FakeEditor() as editor:
            await editor.set_breakpoints(program, "wait @2")
            await editor.launch(program=str(program), cwd=str(tmp_path), sessions="perRank")
            stop = await editor.wait_for_stop()
            assert stop.session.name.endswith("/2")
            await editor.root.until(lambda: len(editor.children) == 3, "three children")
            armed = {member["rank"] for member in await editor.members() if member["isArmed"]}
            assert armed == {2}
            outcome = await editor.root.request("rankscope/control", {"action": "pause", "ranks": "all"})
            assert len(outcome["done"]) == 2, outcome
            others = [await editor.wait_for_stop() for _ in range(2)]
            assert all(other.body["preserveFocusHint"] for other in others)
            assert {other.session.name[-2:] for other in others} == {"/0", "/1"}
            (answer,) = await editor.set_breakpoints(program, {"mark": "end", "logMessage": "100% after {steps > 0}"})
            assert answer["verified"], answer
            go_on.touch()
            outcome = await editor.root.request("rankscope/control", {"action": "continue", "ranks": "all"})
            assert len(outcome["done"]) == 3, outcome
            assert await editor.exit_code() == 0
            for rank in range(3):
                assert f" {rank}] 100% after True" in editor.all_output
                assert f"RESULT {rank}" in editor.output

    run(work())


def test_terminate_and_disconnect_leave_nothing_paused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ranks.py"
    program.write_text(RANKS)
    go_on = tmp_path / "go_on"
    monkeypatch.setenv("GO_ON", str(go_on))

    async def work() -> None:
        async with FakeEditor() as editor:
            await editor.set_breakpoints(program, "wait @all")
            await editor.launch(program=str(program), cwd=str(tmp_path), sessions="perGroup")
            stops = [await editor.wait_for_stop() for _ in range(3)]
            assert len({stop.session.name for stop in stops}) == 1
            names = [thread["name"] for thread in (await stops[0].session.request("threads"))["threads"]]
            assert len([name for name in names if name.endswith(" · MainThread")]) == 3
            await editor.root.request("restart")
            restarted = [await editor.wait_for_stop() for _ in range(3)]
            assert len(restarted) == 3
            await editor.root.request("terminate")
            await editor.root.wait_for("terminated")
            assert [event for event, _ in stops[0].session.events if event == "terminated"]
            await editor.root.wait_for(
                "rankscope/ranksChanged",
                lambda body: len(body["members"]) == 4 and all(m["state"] == "exited" for m in body["members"]),
            )

    run(work())
