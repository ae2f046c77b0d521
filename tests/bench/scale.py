"""A hub with a thousand ranks: how soon they have joined, how soon their stacks are one tree, what they cost at rest.

The ranks are simulated (the agents' wire, no debugger, many to a process), the hub and the client are real.
"""

import asyncio
import sys
import time

import psutil
from _measure import ROOT, Table, environment

from support.hub_session import HubSession

PROGRAM = ROOT / "tests" / "python" / "support" / "simulated_ranks.py"
ROUNDS = 9
IDLE_SECONDS = 20.0
SETTLE_SECONDS = 3.0
TO_REACH = {64: 60, 256: 150, 1024: 500}


async def world(count, *more):
    """A job of so many ranks under a real hub, and how long they took to join, in s."""
    session = await HubSession.launch([sys.executable, str(PROGRAM), str(count), *more], environment())
    try:
        await session.until(lambda: "joined" in session.output, 120)
    except BaseException:
        await session.close()
        raise
    return session, float(session.output.partition("joined")[2].split()[0])


async def merged(session, count):
    """From the request to the whole answer, in ms."""
    started = time.monotonic()
    answer = await session.request("rankscope/stacks", ranks="all")
    took = (time.monotonic() - started) * 1000
    assert answer["count"] == count and not answer["late"], (answer["count"], answer["late"])
    return took


async def ranks(session):
    """The whole list of members, which is told anew when something about them has changed, in ms."""
    started = time.monotonic()
    await session.members()
    return (time.monotonic() - started) * 1000


async def idle(session):
    """Per cent of a core that the hub takes with nothing to do."""
    hub = psutil.Process(session.hub.pid)
    await asyncio.sleep(SETTLE_SECONDS)
    before, started = sum(hub.cpu_times()[:2]), time.monotonic()
    await asyncio.sleep(IDLE_SECONDS)
    return 100 * (sum(hub.cpu_times()[:2]) - before) / (time.monotonic() - started)


async def main():
    table = Table("scale: simulated ranks")
    by_count, joined, rss, cpu, distinct, listed = {}, [], [], [], [], []
    for count in TO_REACH:
        session, seconds = await world(count)
        try:
            if count == max(TO_REACH):
                joined.append(seconds)
                cpu.append(await idle(session))
            by_count[count] = [await merged(session, count) for _ in range(ROUNDS)]
            if count == max(TO_REACH):
                rss.append(psutil.Process(session.hub.pid).memory_info().rss / 2**20)
                listed = [await ranks(session) for _ in range(ROUNDS)]
        finally:
            await session.close()
    for _ in range(2):
        session, seconds = await world(max(TO_REACH), "distinct")
        joined.append(seconds)
        try:
            distinct += [await merged(session, max(TO_REACH)) for _ in range(ROUNDS)]
            rss.append(psutil.Process(session.hub.pid).memory_info().rss / 2**20)
        finally:
            await session.close()
    table.add_many("merged_ms", by_count, "ms", TO_REACH)
    table.add("merged_distinct_ms_1024", distinct, "ms", "no two ranks at the same line")
    table.add("ranks_ms_1024", listed, "ms", "the list that the Ranks view is drawn from")
    table.add("join_s_1024", joined, "s", "<= 5")
    table.add("hub_idle_cpu_pct_1024", cpu, "%", "<= 3")
    table.add("hub_rss_mb_1024", rss, "MB", "<= 150, after the merges; the most of the runs", pick=max)
    table.show()


if __name__ == "__main__":
    asyncio.run(main())
