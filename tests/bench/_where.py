"""Where eight ranks are that are blocked in a collective: asked of the hub, and what two other tools take."""

import asyncio
import socket
import sys
import time
import urllib.request
from pathlib import Path

from _measure import PROGRAMS, environment

from support.hub_session import HubSession

PROGRAM = PROGRAMS / "blocked.py"
RANKS = 8
ROUNDS = 15


async def where_ms_8():
    """Merged stacks of all eight, nothing armed: from the request until the whole answer is there."""
    return await _measured(_asked)


async def where_py_spy_ms_8():
    """The peer: `py-spy dump` of the same eight, all at once."""
    return await _measured(_py_spy)


async def where_torch_ms_8():
    """The peer: the stacks page of torch's debug server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return await _measured(_torch_page(port), str(port))


async def _measured(once, *arguments):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS + 1)]
    session = await HubSession.launch([*torchrun, str(PROGRAM), *arguments], environment())
    try:
        pids = []
        while len(pids) < RANKS:
            ranks = [member for member in await session.members() if member["role"] == "rank"]
            members = {member["id"]: member for member in ranks if member["rank"] in range(RANKS)}
            frames = (await session.request("rankscope/frames", members=list(members)))["frames"]
            pids = [members[name]["pid"] for name, frame in frames.items() if frame and frame["call"] == "barrier"]
            await asyncio.sleep(0.1)
        await once(session, pids)
        samples = []
        for _ in range(ROUNDS):
            started = time.monotonic()
            await once(session, pids)
            samples.append((time.monotonic() - started) * 1000)
        return samples
    finally:
        await session.close()


async def _asked(session, _pids):
    answer = await session.request("rankscope/stacks", ranks=f"0-{RANKS - 1}")
    assert answer["count"] == RANKS, answer


async def _py_spy(_session, pids):
    command = str(Path(sys.executable).parent / "py-spy")
    quiet = asyncio.subprocess.DEVNULL
    started = [
        await asyncio.create_subprocess_exec(command, "dump", "--pid", str(pid), stdout=quiet, stderr=quiet)
        for pid in pids
    ]
    assert not any([await process.wait() for process in started])


def _torch_page(port):
    def get():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/stacks", timeout=10) as answer:
            return answer.read()

    async def once(_session, _pids):
        text = await asyncio.to_thread(get)
        assert text.count(b"wait_for_all") >= RANKS, text[:500]

    return once
