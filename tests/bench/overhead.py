"""What RankScope costs a job: dormant, after arming and disarming, and armed. CPU time, over the plain program's.

All programs of a round live at once and work in turn, slice by slice, so that the machine's moods hit them alike.
Two processes of one program differ by some per cent for as long as they live, so every round starts new ones.
"""

import asyncio
import sys
from pathlib import Path

from _measure import PROGRAMS, Listener, Table, calibrate, environment, other_python, paired_ratio, start, stop

from support.hub_session import HubSession

WORKLOAD = str(PROGRAMS / "workload.py")
ROUNDS = 7
TARGETS = {
    "dormant_calls": "<= 1.02",
    "dormant_torch": "<= 1.02",
    "disarmed_calls": "<= 1.05",
    "disarmed_exceptions": "<= 1.05",
    "after userUnhandled, calls": "<= 1.05",
    "plain again, calls": "control",
    "peer_listen_calls": "",
}


def line_of(mark):
    lines = Path(WORKLOAD).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# @bp {mark}"))


class Programs:
    """The workload programs of one Python, plain and under RankScope, each with its `Worker`."""

    def __init__(self, python):
        self._argv = [python, WORKLOAD]
        self._listener = Listener()
        self._processes = []
        self._sessions = []
        self._workers = []

    async def _accept(self):
        worker = await asyncio.to_thread(self._listener.accept)
        self._workers.append(worker)
        return worker

    async def plain(self, *arguments):
        self._processes.append(start([*self._argv, self._listener.path, *arguments]))
        return await self._accept()

    async def under(self):
        """Started dormant; the session that can arm it, and the worker."""
        session = await HubSession.launch([*self._argv, self._listener.path], environment())
        self._sessions.append(session)
        worker = await self._accept()
        await session.until_members(lambda members: any(m["pid"] == worker.pid for m in members))
        return session, worker

    async def close(self):
        for worker in self._workers:
            worker.close()
        for session in self._sessions:
            await session.close()
        for process in self._processes:
            stop(process)
        self._listener.close()


async def arm(session):
    """With a breakpoint in a function that is never called."""
    await session.set_breakpoints(WORKLOAD, [{"line": line_of("elsewhere")}])
    await session.until_members(lambda members: any(m["isArmed"] for m in members))


async def disarm(session):
    await session.set_breakpoints(WORKLOAD, [])
    await session.request("setExceptionBreakpoints", filters=[])
    await session.until_members(lambda members: not any(m["isArmed"] for m in members))


async def one_round():
    """The ratios of one set of new processes."""
    programs = Programs(sys.executable)
    try:
        plain = await programs.plain()
        twin = await programs.plain()
        _, dormant = await programs.under()
        listening = await programs.plain("listen")
        after_arm, disarmed = await programs.under()
        await arm(after_arm)
        disarmed.ask("calls", 1000)
        after_filter, caught = await programs.under()
        await after_filter.request("setExceptionBreakpoints", filters=["userUnhandled"])
        await after_filter.until_members(lambda members: any(m["isArmed"] for m in members))
        caught.ask("exceptions", 1000)
        await asyncio.gather(disarm(after_arm), disarm(after_filter))

        calls, exceptions, steps = (calibrate(plain, what) for what in ("calls", "exceptions", "torch"))
        return {
            "dormant_calls": paired_ratio(plain, dormant, "calls", calls),
            "dormant_torch": paired_ratio(plain, dormant, "torch", steps),
            "disarmed_calls": paired_ratio(plain, disarmed, "calls", calls),
            "disarmed_exceptions": paired_ratio(plain, caught, "exceptions", exceptions),
            "after userUnhandled, calls": paired_ratio(plain, caught, "calls", calls),
            "plain again, calls": paired_ratio(plain, twin, "calls", calls),
            "peer_listen_calls": paired_ratio(plain, listening, "calls", calls, pairs=3),
        }
    finally:
        await programs.close()


async def one_armed_round(python):
    """The armed program, on a Python that has sys.monitoring."""
    programs = Programs(python)
    try:
        plain = await programs.plain()
        session, worker = await programs.under()
        await arm(session)
        return paired_ratio(plain, worker, "calls", calibrate(plain, "calls"))
    finally:
        await programs.close()


async def main():
    rounds = [await one_round() for _ in range(ROUNDS)]
    table = Table("overhead: process CPU time under RankScope over the plain program's, new processes each round")
    for key, target in TARGETS.items():
        is_key = "," not in key
        table.add(key, [ratios[key] for ratios in rounds], "x", target, is_key=is_key)
    python = other_python("3.12", "3.13")
    if python is None:
        table.lack("armed_calls_312", "no Python 3.12 or 3.13 in .venvs")
    else:
        table.add("armed_calls_312", [await one_armed_round(python) for _ in range(ROUNDS)], "x", "<= 1.05")
    table.show()


if __name__ == "__main__":
    asyncio.run(main())
