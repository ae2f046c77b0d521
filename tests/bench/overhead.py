"""What RankScope costs a job: dormant, after arming and disarming, and armed. CPU time, over the plain program's.

All programs of a comparison live at once and work in turn, slice by slice, so that the machine's moods hit them alike.
"""

import asyncio
import sys

from _measure import PROGRAMS, Listener, Table, calibrate, environment, other_python, paired_ratios, start, stop
from support.hub_session import HubSession

WORKLOAD = str(PROGRAMS / "workload.py")


def line_of(mark):
    with open(WORKLOAD) as source:
        return next(number for number, line in enumerate(source, 1) if line.rstrip().endswith(f"# @bp {mark}"))


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


async def main():
    table = Table("overhead: process CPU time, a slice under RankScope over the same slice of the plain program")
    programs = Programs(sys.executable)
    try:
        plain = await programs.plain()
        _, dormant = await programs.under()
        listening = await programs.plain("listen")
        after_arm, disarmed = await programs.under()
        await arm(after_arm)
        disarmed.ask("calls", 1000)
        await disarm(after_arm)
        after_filter, caught = await programs.under()
        await after_filter.request("setExceptionBreakpoints", filters=["userUnhandled"])
        await after_filter.until_members(lambda members: any(m["isArmed"] for m in members))
        caught.ask("exceptions", 1000)
        await disarm(after_filter)

        others = {"dormant_calls": dormant, "disarmed_calls": disarmed}
        for key, ratios in paired_ratios(plain, others, "calls").items():
            table.add(key, ratios, "x", "<= 1.02" if key.startswith("dormant") else "<= 1.05")
        ratios = paired_ratios(plain, {"dormant": dormant}, "torch")["dormant"]
        table.add("dormant_torch", ratios, "x", "<= 1.02")
        ratios = paired_ratios(plain, {"caught": caught}, "exceptions")["caught"]
        table.add("disarmed_exceptions", ratios, "x", "<= 1.05")
        ratios = paired_ratios(plain, {"caught": caught}, "calls")["caught"]
        table.add("disarmed_exceptions, calls", ratios, "x", "<= 1.05", is_key=False)
        ratios = paired_ratios(plain, {"listen": listening}, "calls", pairs=9, settle=1)["listen"]
        table.add("peer_listen_calls", ratios, "x")
    finally:
        await programs.close()
    await armed(table)
    table.show()


async def armed(table):
    """The armed program, on a Python that has sys.monitoring."""
    python = other_python("3.12", "3.13")
    if python is None:
        table.lack("armed_calls_312", "no Python 3.12 or 3.13 in .venvs")
        return
    programs = Programs(python)
    try:
        plain = await programs.plain()
        session, worker = await programs.under()
        await arm(session)
        calibrate(worker, "calls")
        ratios = paired_ratios(plain, {"armed": worker}, "calls")["armed"]
        table.add("armed_calls_312", ratios, "x", "<= 1.05")
    finally:
        await programs.close()


if __name__ == "__main__":
    asyncio.run(main())
