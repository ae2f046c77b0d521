"""Why a process says that it ends, and what the hub makes of ends without a word."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import psutil
import pytest

from rankscope.agent import ending
from support.small_hub import SmallHub

AT_THE_TOP = "raise ValueError('bad batch\\nsecond line')\n"
IN_A_FUNCTION = """
class Odd(Exception):
    def __str__(self):
        raise RuntimeError("no text")

def step():
    raise Odd
step()
"""
CAUGHT = """
import sys
try:
    1 / 0
except ZeroDivisionError as e:
    sys.last_value = sys.last_exc = e  # as a console or a test runner keeps it
def inner():
    1 / 0
def outer():
    try:
        inner()
    except ZeroDivisionError as e:
        sys.excepthook(type(e), e, e.__traceback__)
        sys.last_value = sys.last_exc = e
outer()
"""
IN_A_THREAD = """
import threading
def work():
    raise ValueError("a thread's own")
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
EXIT = "raise SystemExit('wrong usage')\n"
INTERRUPTED = "raise KeyboardInterrupt\n"
UNREADABLE = "def (:\n"
OWN_HOOK = "import sys\nsys.excepthook = lambda *_: None\nraise KeyError('x')\n"
LONG = "raise OSError('x' * 1000)\n"
WAITS = "print('ready', flush=True)\nimport threading\nthreading.Event().wait()\n"


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (AT_THE_TOP, "ValueError: bad batch"),
        (IN_A_FUNCTION, "Odd"),
        (UNREADABLE, "SyntaxError: "),
        (OWN_HOOK, "KeyError: 'x'"),
        (LONG, "OSError: " + "x" * 191),
        (CAUGHT, ""),
        (IN_A_THREAD, ""),
        (EXIT, ""),
        (INTERRUPTED, ""),
        ("pass\n", ""),
    ],
)
def test_what_nothing_caught_is_told(tmp_path: Path, source: str, told: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(source)

    async def work() -> None:
        async with SmallHub(tmp_path) as hub:
            await hub.start(str(program))
            member = await hub.until(lambda: next(iter(hub.fleet.members.values()), None), "a member")
            await hub.until(lambda: not member.is_live, "its end")
            assert member.state == ("crashed" if told else "exited")
            assert member.ending == told if not told.endswith(": ") else member.ending.startswith(told)

    run(work())


def test_a_killed_process_has_crashed_unless_its_end_was_to_be_expected(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(WAITS)

    async def work() -> None:
        async with SmallHub(tmp_path) as hub:

            async def killed(number: signal.Signals) -> tuple[str, str]:
                process = await hub.start(str(program))
                assert process.stdout is not None
                await process.stdout.readline()
                member = next(m for m in hub.fleet.members.values() if m.hello.pid == process.pid)
                process.send_signal(number)
                await hub.until(lambda: not member.is_live, "its end")
                return member.state, member.ending

            assert await killed(signal.SIGKILL) == ("crashed", "killed or ended without a word")
            assert await killed(signal.SIGTERM) == ("crashed", "killed or ended without a word")
            hub.fleet.has_ended = True  # the driver has gone, or we end the job
            assert await killed(signal.SIGKILL) == ("exited", "")

    run(work())


def test_the_drivers_exit_code_says_what_killed_it(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(WAITS)

    async def work() -> None:
        async with SmallHub(tmp_path) as hub:
            process = await hub.start(str(program))
            member = await hub.until(lambda: next(iter(hub.fleet.members.values()), None), "a member")
            hub.fleet.driver_ended(137)  # it lives: the code is another's
            assert member.is_live
            psutil.Process(process.pid).kill()
            await process.wait()
            hub.fleet.driver_ended(137)
            assert (member.state, member.ending) == ("crashed", "killed by SIGKILL")

    run(work())


def test_a_driver_that_leaves_without_a_word_but_with_an_exit_code_has_not_crashed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import os\nos._exit(0)\n")

    async def work() -> None:
        async with SmallHub(tmp_path) as hub:
            process = await hub.start(str(program))
            member = await hub.until(lambda: next(iter(hub.fleet.members.values()), None), "a member")
            await process.wait()
            hub.fleet.driver_ended(0)
            assert (member.state, member.ending) == ("exited", "")

    run(work())


def test_a_process_that_becomes_another_program_has_ended_as_what_it_was(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\nif len(sys.argv) < 2:\n    os.execv(sys.executable, [sys.executable, __file__, '1'])\n"
    )

    async def work() -> None:
        async with SmallHub(tmp_path) as hub:
            await hub.start(str(program))
            await hub.until(lambda: len(hub.fleet.members) == 2, "both")
            first, second = hub.fleet.members.values()
            assert first.hello.pid == second.hello.pid
            assert first.state == "exited"
            await hub.until(lambda: second.state == "exited", "its end")

    run(work())


def test_names_of_exceptions_are_a_tracebacks() -> None:
    assert ending.described(psutil.NoSuchProcess(1, msg="gone")).startswith("psutil.NoSuchProcess: gone")
