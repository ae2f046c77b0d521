"""How soon a failure of four ranks is kept and held, what it costs the job's death, how big and quick a big dump is."""

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _measure import PROGRAMS, Table, environment

from rankscope.postmortem import kept_run, listing
from support.hub_session import HubSession

PROGRAM = PROGRAMS / "failing.py"
ROUNDS = 5
RAISED = "RAISED "


def raised_at(output):
    return float(output.partition(RAISED)[2].split()[0])


def new_folder():
    return tempfile.TemporaryDirectory(prefix="rankscope-bench-")


async def launch(folder, **settings):
    return await HubSession.launch([sys.executable, str(PROGRAM)], environment(), cwd=folder, **settings)


async def capture():
    """From the raise until the dumps of all four ranks lie in the record, in ms."""
    with new_folder() as folder:
        session = await launch(folder)
        try:
            found = []
            while len(found) < 5:  # the launcher is one as well
                await asyncio.sleep(0.005)
                found = list(Path(folder).glob(".rankscope/runs/*/dumps/*.msgpack"))
            await session.until(lambda: bool(session.of("terminated")))
        finally:
            await session.close()
        return (max(path.stat().st_mtime for path in found) - raised_at(session.output)) * 1000


async def held():
    """From the raise of a dormant rank until the client has its stop, in ms."""
    with new_folder() as folder:
        session = await launch(folder, postMortem="pause")
        try:
            await session.until_stops(1)
            stopped = next(at for name, _, at in session.events if name == "stopped")
            await session.until(lambda: RAISED in session.output)
        finally:
            await session.close()
        return (stopped - raised_at(session.output)) * 1000


def death(prefix):
    """How long a job takes from its raise to its end, in seconds."""
    with new_folder() as folder:
        argv = [*prefix, sys.executable, str(PROGRAM), "alone"]
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        process = subprocess.Popen(argv, cwd=folder, env=environment(), **quiet)
        pid, raised = process.stdout.readline().split()[1:]
        while Path(f"/proc/{pid}/stat").exists() and not is_zombie(pid):
            time.sleep(0.002)
        took = time.time() - float(raised)
        process.communicate(timeout=60)
        return took


def is_zombie(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def exit_delay():
    plain = statistics.median(death([]) for _ in range(ROUNDS))
    return [death([sys.executable, "-m", "rankscope.cli", "run", "--"]) - plain for _ in range(ROUNDS)]


async def big(folder):
    """Megabytes of a dump of 2 GB of tensors and five million entries; ms from attach to its first variables."""
    argv = [sys.executable, "-m", "rankscope.cli", "run", "--", sys.executable, str(PROGRAM), "big"]
    subprocess.run(argv, cwd=folder, env=environment(), capture_output=True, timeout=300, check=False)
    run = listing.runs(Path(folder))[0]
    [file] = (run.folder / kept_run.DUMPS).iterdir()
    return file.stat().st_size / 1e6, [await opened(run.folder) for _ in range(ROUNDS)]


async def opened(record):
    from rankscope.launch.hub_process import HubProcess

    hub = await HubProcess.start(environment())
    session = HubSession(hub, await hub.connect())
    try:
        await session.request("initialize", clientID="bench", pathFormat="path", linesStartAt1=True)
        began = time.monotonic()
        attaching = asyncio.ensure_future(session.request("attach", record=str(record), sessions="single"))
        await session.until(lambda: bool(session.of("initialized")))
        await session.request("configurationDone")
        await attaching
        [stop] = await session.until_stops(1)
        frame = await session.top_frame(stop["threadId"])
        scopes = (await session.request("scopes", frameId=frame["id"]))["scopes"]
        await session.request("variables", variablesReference=scopes[0]["variablesReference"])
        return (time.monotonic() - began) * 1000
    finally:
        await session.close()


def has_room():
    pages, size = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return pages * size > 5 << 30


async def main():
    table = Table("postmortem: four ranks, one of them fails")
    table.add("capture_ms_4", [await capture() for _ in range(ROUNDS)], "ms", "<= 1000")
    table.add("held_ms_4", [await held() for _ in range(ROUNDS)], "ms", "<= 1500")
    table.add("exit_delay_s", await asyncio.to_thread(exit_delay), "s", "<= 2.0")
    if has_room():
        with new_folder() as folder:
            size, opening = await big(folder)
        table.add("dump_mb_big", [size], "MB", "<= 4")
        table.add("open_ms_big", opening, "ms", "<= 500")
    else:
        table.lack("dump_mb_big", "needs 5 GB of free memory")
        table.lack("open_ms_big", "needs 5 GB of free memory")
    table.show()


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    asyncio.run(main())
