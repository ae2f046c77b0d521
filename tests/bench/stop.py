"""How soon a person sees four ranks stopped: by a breakpoint on all of them, and by pausing them."""

import asyncio
import sys
import time

from _measure import PROGRAMS, Table, environment

from support.hub_session import HubSession

PROGRAM = PROGRAMS / "ranks.py"
ROUNDS = 7


def hit_line():
    return next(n for n, line in enumerate(PROGRAM.read_text().splitlines(), 1) if line.endswith("# @bp hit"))


def ranks_of(members):
    return [member for member in members if member["role"] == "rank" and member["state"] not in ("exited", "lost")]


async def stacks(session):
    """All ranks stop at one line: from the moment the last one is there until all stacks are here, in ms."""
    session.events.clear()
    await session.set_breakpoints(PROGRAM, [{"line": hit_line(), "condition": "True  # @all"}])
    asked, hits = {}, []

    async def stack_of(thread):
        frames = (await session.request("stackTrace", threadId=thread, startFrame=0, levels=20))["stackFrames"]
        seen = time.time()
        value = await session.request("evaluate", expression="hit_at", frameId=frames[0]["id"], context="watch")
        hits.append(float(value["result"]))
        return seen

    while len(asked) < 4:
        await session.until(lambda: len(session.of("stopped")) > len(asked))
        for body in session.of("stopped"):
            if body["threadId"] not in asked:
                asked[body["threadId"]] = asyncio.ensure_future(stack_of(body["threadId"]))
    seen = max(await asyncio.gather(*asked.values()))
    await session.set_breakpoints(PROGRAM, [])
    await session.request("rankscope/control", action="continue", ranks="all")
    return (seen - max(hits)) * 1000


async def pause(session):
    """From the request until all four are known to be stopped, in ms."""
    session.events.clear()
    started = time.time()
    pausing = asyncio.ensure_future(session.request("rankscope/control", action="pause", ranks="all"))
    await session.until(lambda: len({body["threadId"] for body in session.of("stopped")}) >= 4)
    took = time.time() - started
    await pausing
    await session.request("rankscope/control", action="continue", ranks="all")
    return took * 1000


async def until_armed(session, wanted):
    await session.until_members(lambda members: all(member["isArmed"] == wanted for member in ranks_of(members)))


async def main():
    session = await HubSession.launch([sys.executable, str(PROGRAM)], environment())
    try:
        await session.until_members(lambda members: len(ranks_of(members)) == 4)
        dormant = []
        for _ in range(ROUNDS):
            await until_armed(session, wanted=False)
            dormant.append(await pause(session))
        keep = [{"line": hit_line(), "condition": "False  # @all"}]
        hit = [await stacks(session) for _ in range(ROUNDS)]
        await session.set_breakpoints(PROGRAM, keep)
        await until_armed(session, wanted=True)
        armed = [await pause(session) for _ in range(ROUNDS)]
    finally:
        await session.close()
    table = Table("stop: four ranks")
    table.add("stacks_ms_4", hit, "ms", "<= 150; Ray's debugger, one rank after the other: 1180")
    table.add("pause_all_armed_ms_4", armed, "ms", "<= 300")
    table.add("pause_all_dormant_ms_4", dormant, "ms", "<= 3000")
    table.show()


if __name__ == "__main__":
    asyncio.run(main())
