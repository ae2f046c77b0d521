"""Eight real gloo ranks as one. One function per key, named as its key; `npm run bench -- world KEY ...` runs some."""

import asyncio
import contextlib
import sys
import time

from _compare import compare_ms_8, compare_tensor_ms_8
from _measure import PROGRAMS, Table, environment
from _tensor_show import tensor_show_ms, tensor_show_nan_vs_read, tensor_show_vs_read
from _where import where_ms_8, where_py_spy_ms_8, where_torch_ms_8

from support.hub_session import HubSession

PROGRAM = PROGRAMS / "world.py"
RANKS = 8
ROUNDS = 7


def line_of(program, mark):
    return next(n for n, line in enumerate(program.read_text().splitlines(), 1) if line.endswith(f"# @bp {mark}"))


def ranks_of(members):
    return [member for member in members if member["role"] == "rank" and member["state"] not in ("exited", "lost")]


@contextlib.asynccontextmanager
async def world(program=PROGRAM, *arguments, **settings):
    """A job of eight ranks that have all joined, and its hub; ended on leaving."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS)]
    session = await HubSession.launch([*torchrun, str(program), *arguments], environment(), **settings)
    try:
        await session.until_members(lambda members: len(ranks_of(members)) == RANKS)
        yield session
    finally:
        await session.close()


def stops(session):
    """When the client heard of the first stop of each thread."""
    heard = {}
    for name, body, at in session.events:
        if name == "stopped":
            heard.setdefault(body["threadId"], at)
    return list(heard.values())


async def stop_together_ms_8():
    """With `stopTogether`: from the first rank's stop until the last of all eight has stopped, as heard here."""
    at_rank_0 = [{"line": line_of(PROGRAM, "work"), "condition": "True  # @0"}]
    samples = []
    async with world(stopTogether=True) as session:
        for _ in range(ROUNDS):
            session.events.clear()
            await session.set_breakpoints(PROGRAM, at_rank_0)
            await session.until(lambda: len(stops(session)) == RANKS)
            samples.append((max(stops(session)) - min(stops(session))) * 1000)
            await session.set_breakpoints(PROGRAM, [])
            await session.request("rankscope/control", action="continue", ranks="all")
    return samples


async def lockstep_ms_8():
    """One `next` on all eight ranks, until the client has heard of all eight stops."""
    samples = []
    async with world() as session:
        await session.set_breakpoints(PROGRAM, [{"line": line_of(PROGRAM, "work"), "condition": "True  # @all"}])
        await session.until(lambda: len(stops(session)) == RANKS)
        for _ in range(ROUNDS):
            session.events.clear()
            began = time.time()
            await session.request("rankscope/control", action="next", ranks="all")
            await session.until(lambda: len(stops(session)) == RANKS)
            samples.append((max(stops(session)) - began) * 1000)
    return samples


# Each returns its samples, and stands here with their unit and what they are to reach.
KEYS = [
    (stop_together_ms_8, "ms", "<= 500"),
    (lockstep_ms_8, "ms", "<= 300"),
    (where_ms_8, "ms", "<= 40"),
    (where_py_spy_ms_8, "ms", "the peer: py-spy, all eight at once"),
    (where_torch_ms_8, "ms", "the peer: torch's debug server"),
    (compare_ms_8, "ms", "<= 100"),
    (compare_tensor_ms_8, "ms", "<= 800"),
    (tensor_show_ms, "ms", "a display; see the next"),
    (tensor_show_vs_read, "reads", "<= 3"),
    (tensor_show_nan_vs_read, "reads", "<= 12"),
]


async def main(names):
    unknown = set(names) - {measure.__name__ for measure, *_ in KEYS}
    if unknown:
        sys.exit(f"no key is called {', '.join(sorted(unknown))}")
    table = Table("world: eight gloo ranks as one")
    for measure, unit, target in KEYS:
        if names and measure.__name__ not in names:
            continue
        try:
            table.add(measure.__name__, await measure(), unit, target)
        except Exception as error:  # the other keys are wanted all the same
            table.lack(measure.__name__, f"{type(error).__name__}: {error}")
    table.show()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
