"""What a hub that cannot start, listen or launch says."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys

import pytest

from rankscope.dap.channel import Channel
from rankscope.dap.messages import DapError
from rankscope.errors import UserError
from rankscope.launch.hub_process import HubProcess
from support.runs import environment


def test_a_port_in_use_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        argv = [sys.executable, "-m", "rankscope.hub", "--editor", f"tcp:{port}"]
        hub = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=30, check=False)
    said = json.loads(hub.stdout)
    assert (hub.returncode, said["ready"], said["code"]) == (1, False, "editor-socket")
    assert str(port) in said["message"]


def test_a_hub_that_does_not_start_is_said_with_its_last_words() -> None:
    async def case() -> None:
        with pytest.raises(UserError) as caught:
            await HubProcess.start({**environment(), "PYTHONHOME": "/nowhere"})
        assert caught.value.code == "hub-failed"
        assert caught.value.hint

    asyncio.run(case())


class NoTerminal:
    """A client that says it has a terminal, and then cannot start anything in it."""

    def __init__(self) -> None:
        self.initialized = asyncio.Event()

    def on_event(self, name: str, _body: dict[str, object]) -> None:
        if name == "initialized":
            self.initialized.set()

    async def do_run_in_terminal(self, _arguments: dict[str, object]) -> dict[str, object]:
        raise DapError("no window to open it in")


def test_a_terminal_that_fails_is_said() -> None:
    async def case() -> None:
        hub = await HubProcess.start(environment())
        channel = await hub.connect()
        client = NoTerminal()
        serving = asyncio.ensure_future(channel.serve(client))
        await channel.request("initialize", {"supportsRunInTerminalRequest": True})
        launching = asyncio.ensure_future(channel.request("launch", {"command": [sys.executable, "-V"]}))
        await asyncio.wait_for(client.initialized.wait(), 10)
        await channel.request("configurationDone")
        with pytest.raises(DapError, match="no window to open it in") as caught:
            await launching
        assert caught.value.code == "launch-failed"
        await channel.close()
        await serving
        await hub.close()

    asyncio.run(case())


def test_over_tcp_nothing_is_heard_before_the_token() -> None:
    async def case() -> None:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "rankscope.hub", "--editor", "tcp:0"),
            env=environment(),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        said = json.loads(await asyncio.wait_for(process.stdout.readline(), 30))
        channel = Channel(*await asyncio.open_connection("127.0.0.1", said["port"]))
        client = NoTerminal()
        serving = asyncio.ensure_future(channel.serve(client))
        await channel.request("initialize", {})
        for command in ("rankscope/ranks", "setBreakpoints", "evaluate", "terminate", "launch", "attach"):
            with pytest.raises(DapError, match="token") as caught:
                await channel.request(command, {"token": "guessed", "command": [sys.executable, "-V"]})
            assert caught.value.code == "bad-token"
        job = {"command": [sys.executable, "-V"], "console": "internalConsole", "token": said["token"]}
        launching = asyncio.ensure_future(channel.request("launch", job))
        await asyncio.wait_for(client.initialized.wait(), 10)
        await channel.request("configurationDone")
        await launching
        await channel.request("disconnect")
        await serving
        assert await asyncio.wait_for(process.wait(), 30) == 0

    asyncio.run(case())
