"""A job in the client's terminal: the hub knows its pid and its end from the launcher, for every client."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import psutil
import pytest

from rankscope.dap.messages import DapError
from support.dap_client import FakeEditor

JOB = """
import os, sys, threading
print("ADDED", os.environ.get("ADDED"), flush=True)
while not os.path.exists(sys.argv[1]):
    threading.Event().wait(0.02)
sys.exit(6)
"""


class Client:
    """Runs what it is asked to run, as a terminal does. Owns the processes; :meth:`close` ends and collects them."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.started: list[asyncio.subprocess.Process] = []
        self.starts = True
        self.was_asked = asyncio.Event()

    async def do_run_in_terminal(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(arguments)
        self.was_asked.set()
        if self.starts:
            environment = {**os.environ, "PATH": "/usr/bin:/bin", **arguments["env"]}
            argv = arguments["args"]
            self.started.append(
                await asyncio.create_subprocess_exec(
                    *argv, cwd=arguments["cwd"], env=environment, start_new_session=True
                )
            )
        return {}

    async def close(self) -> None:
        for process in self.started:
            if process.returncode is None:
                process.kill()
            await process.wait()


@contextlib.asynccontextmanager
async def editor_with(client: Client) -> AsyncIterator[FakeEditor]:
    try:
        async with FakeEditor(answers=client, client={"supportsRunInTerminalRequest": True}) as editor:
            yield editor
    finally:
        await client.close()


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


@pytest.fixture
def job(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "job.py").write_text(JOB)
    return {
        "program": "job.py",
        "args": [str(tmp_path / "go_on")],
        "cwd": str(tmp_path),
        "console": "integratedTerminal",
        "env": {"ADDED": "yes"},
    }


async def driver(editor: FakeEditor, other_than: int = 0) -> psutil.Process:
    body = await editor.root.wait_for(
        "rankscope/ranksChanged",
        lambda body: [m for m in body["members"] if m["pid"] != other_than and m["state"] == "running"],
    )
    return psutil.Process(next(m["pid"] for m in body["members"] if m["pid"] != other_than))


def test_its_exit_code_is_known(tmp_path: Path, job: dict[str, Any]) -> None:
    async def work() -> None:
        client = Client()
        async with editor_with(client) as editor:
            await editor.launch(**job)
            assert client.asked[0]["env"] == {}
            process = await driver(editor)
            assert process.environ()["ADDED"] == "yes"
            assert process.parent() == psutil.Process(client.started[0].pid)
            (tmp_path / "go_on").touch()
            assert await editor.exit_code() == 6
            assert await client.started[0].wait() == 6

    run(work())


def test_a_restart_has_a_driver_of_its_own_and_stop_leaves_none(tmp_path: Path, job: dict[str, Any]) -> None:
    async def work() -> None:
        client = Client()
        async with editor_with(client) as editor:
            await editor.launch(**job)
            first = await driver(editor)
            await editor.root.request("restart")
            await client.started[0].wait()
            second = await driver(editor, other_than=first.pid)
            assert [m["pid"] for m in await editor.members()] == [second.pid]
            assert not [event for event, _ in editor.root.events if event in ("exited", "terminated")]
            await editor.root.request("terminate")
            assert await editor.exit_code() == 143
            assert await client.started[1].wait() == -15

    run(work())


def test_a_terminal_that_is_closed_is_said(job: dict[str, Any]) -> None:
    async def work() -> None:
        client = Client()
        async with editor_with(client) as editor:
            await editor.launch(**job)
            process = await driver(editor)
            client.started[0].kill()
            process.kill()
            assert await editor.exit_code() == 129
            assert "the terminal was closed" in editor.output
            (member,) = await editor.members()
            assert (member["state"], member["ending"]) == ("crashed", "killed or ended without a word")

    run(work())


def test_what_killed_the_driver_is_named(job: dict[str, Any]) -> None:
    async def work() -> None:
        client = Client()
        async with editor_with(client) as editor:
            await editor.launch(**job)
            (await driver(editor)).kill()
            assert await editor.exit_code() == 137
            (member,) = await editor.members()
            assert (member["state"], member["ending"]) == ("crashed", "killed by SIGKILL")

    run(work())


def test_a_program_that_cannot_start_and_a_terminal_that_starts_nothing(job: dict[str, Any]) -> None:
    async def work() -> None:
        client = Client()
        async with editor_with(client) as editor:
            with pytest.raises(DapError, match="'no-such-python' cannot be started") as caught:
                await editor.launch(**job, python="no-such-python")
            assert caught.value.code == "no-such-program"
        client = Client()
        client.starts = False
        async with editor_with(client) as editor:
            launching = asyncio.ensure_future(editor.launch(**job))
            await asyncio.wait_for(client.was_asked.wait(), 20)
            await editor.root.request("disconnect", {"terminateDebuggee": True})
            with pytest.raises(DapError):
                await launching

    run(work())


@pytest.mark.parametrize("console", ["integratedTerminal", "internalConsole"])
def test_without_debugging_no_agent_comes_along(tmp_path: Path, job: dict[str, Any], console: str) -> None:
    async def work() -> None:
        client = Client()
        async with editor_with(client) as editor:
            point = {"source": {"path": str(tmp_path / "job.py")}, "breakpoints": [{"line": 3}]}
            await editor.launch(**{**job, "console": console, "noDebug": True})
            (answer,) = (await editor.root.request("setBreakpoints", point))["breakpoints"]
            assert (answer["verified"], answer["message"]) == (False, "the job runs without debugging")
            (tmp_path / "go_on").touch()
            assert await editor.exit_code() == 6
            assert await editor.members() == []

    run(work())


def test_the_chosen_pythons_programs_are_found(
    tmp_path: Path, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")  # as the extension starts the hub

    async def work() -> None:
        client = Client()
        async with editor_with(client) as editor:
            del job["program"]
            command = ["python", "job.py", str(tmp_path / "go_on")]
            await editor.launch(**{**job, "command": command, "args": []})
            assert (await driver(editor)).environ()["PATH"] == f"{programs}:/usr/bin:/bin"
            (tmp_path / "go_on").touch()
            assert await editor.exit_code() == 6

    run(work())
