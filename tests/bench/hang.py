"""How soon a hang is told after its time has come, and what the watch costs a loop of collectives.

The loops of a round live at once and work in turn, with and without the agent; each round starts new processes.
"""

import asyncio
import statistics
import sys

from _measure import PROGRAMS, Listener, Table, environment, start, stop

from support.hub_session import HubSession

ARGV = [sys.executable, str(PROGRAMS / "collectives.py")]
HANG_AFTER = 4.0
HANGS = 5
RANKS = 4
ROUNDS = 5
PAIRS = 21
SLICE_SECONDS = 0.25


class World:
    """The ranks of one job, by number."""

    def __init__(self, workers):
        self.ranks = workers

    @classmethod
    async def of(cls, listener, count):
        workers = [await asyncio.to_thread(listener.accept) for _ in range(count)]
        return cls(sorted(workers, key=lambda worker: worker.ask("rank")))

    async def loop(self, rounds):
        """CPU seconds of so many collectives, all ranks' together, and seconds of the slowest rank."""
        took = await asyncio.gather(*(asyncio.to_thread(rank.ask, "loop", rounds) for rank in self.ranks))
        return sum(cpu for cpu, _ in took), max(wall for _, wall in took)

    def close(self):
        for rank in self.ranks:
            rank.close()


async def launch(listener, ranks, **settings):
    return await HubSession.launch(
        [*ARGV, listener.path, str(ranks)], environment(), __extension={"version": "bench"}, **settings
    )


def ids(session):
    """The findings so far; one that is told again has the same id."""
    return list(dict.fromkeys(body["id"] for body in session.of("rankscope/finding")))


async def reports():
    """Seconds from the moment that makes a hang to the finding, of hangs one after the other."""
    listener = Listener()
    session = await launch(listener, RANKS, hangAfter=HANG_AFTER)
    world = None
    found = []
    try:
        world = await World.of(listener, RANKS)
        await world.loop(10)
        for _ in range(HANGS):
            known = len(ids(session))
            began = min([await asyncio.to_thread(rank.ask, "hang") for rank in world.ranks[1:]])
            await session.until(lambda known=known: len(ids(session)) > known)
            newest = ids(session)[-1]
            at = next(at for name, body, at in session.events if name == "rankscope/finding" and body["id"] == newest)
            found.append(at - began - HANG_AFTER)
            await asyncio.to_thread(world.ranks[0].ask, "hang")  # it comes after all
    finally:
        if world is not None:
            world.close()
        await session.close()
        listener.close()
    return found


async def overhead():
    """CPU time of a loop with the agent over that without; and of another one without. Medians of neighbours."""
    listeners = [Listener() for _ in range(3)]
    plain = [start([*ARGV, listener.path, "2"]) for listener in listeners[:2]]
    session = None
    worlds = []
    try:
        session = await launch(listeners[2], 2)
        worlds = [await World.of(listener, 2) for listener in listeners]
        rounds = 64
        while (await worlds[0].loop(rounds))[1] < SLICE_SECONDS:
            rounds *= 2
        ratios = []
        for turn in range(PAIRS):
            order = worlds if turn % 2 else worlds[::-1]
            took = {id(world): await world.loop(rounds) for world in order}
            (base, _), (twin, _), (under, _) = (took[id(world)] for world in worlds)
            ratios.append((under / base, twin / base))
        return [statistics.median(each) for each in zip(*ratios, strict=True)]
    finally:
        for world in worlds:
            world.close()
        if session is not None:
            await session.close()
        for process in plain:
            stop(process)
        for listener in listeners:
            listener.close()


async def main():
    table = Table(f"hang: {RANKS} ranks, told after {HANG_AFTER:g} s; a loop of all_reduce (64 kB) on two ranks")
    table.add("report_s", await reports(), "s", "<= 3")
    under, twin = zip(*[await overhead() for _ in range(ROUNDS)], strict=True)
    table.add("recorder_overhead", under, "x", "<= 1.02")
    table.add("plain again", twin, "x", "control", is_key=False)
    table.show()


if __name__ == "__main__":
    asyncio.run(main())
