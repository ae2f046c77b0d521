"""What a signal handler has written, read as a dump; torn, foreign and empty texts as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankscope.hub.kept_member import KeptMember
from rankscope.postmortem import fault_text
from rankscope.postmortem.repair import repaired
from rankscope.wire.link import fault_pointer

pytestmark = pytest.mark.core

AGENT = """Thread 0x00007f01 (most recent call first):
  File "/usr/lib/python3.11/selectors.py", line 415 in select
  File "/code/rankscope/agent/inbox.py", line 44 in wait
  File "/code/rankscope/agent/agent.py", line 183 in _run
  File "/usr/lib/python3.11/threading.py", line 982 in run

"""
MAIN = """ 0x00007f02 (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/code/train.py", line 9 in step
  File "/code/rankscope/agent/identity.py", line 177 in _wrap
  File "/code/train.py", line 20 in <module>
"""
SEGV = (
    f"Fatal Python error: Segmentation fault\n\n{AGENT}Current thread{MAIN}\nExtension modules: torch._C (total: 1)\n"
)
TERM = f"{AGENT}Current thread{MAIN}"
ALONE = f"Fatal Python error: Segmentation fault\n\nStack{MAIN.partition(' (')[1]}{MAIN.partition(' (')[2]}"
LOADER = """Fatal Python error: Aborted

Thread 0x00007f03 (most recent call first):
  File "/code/load.py", line 3 in read
  File "/usr/lib/python3.11/threading.py", line 982 in run

Current thread 0x00007f04 (most recent call first):
  File "/code/load.py", line 7 in crash

Thread 0x00007f02 (most recent call first):
  File "/code/train.py", line 20 in <module>
"""


def lines(dump: dict[str, object]) -> list[list[int]]:
    sound = repaired(dump)
    return [[sound["frames"][number]["line"] for number in thread["frames"]] for thread in sound["threads"]]


def test_a_fatal_signal() -> None:
    fault = fault_text.parse(SEGV)
    assert fault is not None
    assert (fault.signal, fault.is_fatal, fault.place) == ("SIGSEGV", True, ("step", "/code/train.py", 9))
    assert lines(fault.dump) == [[519, 9, 20]]  # ours are left out
    assert fault.dump["exception"]["type"] == "SIGSEGV"
    [thread] = fault.dump["threads"]
    assert thread["isMain"] and thread["isFailing"]


def test_an_end_that_was_asked_for() -> None:
    fault = fault_text.parse(TERM)
    assert fault is not None
    assert (fault.signal, fault.is_fatal) == ("SIGTERM", False)
    assert lines(fault.dump) == [[519, 9, 20]]


def test_the_thread_that_failed_comes_first() -> None:
    fault = fault_text.parse(LOADER)
    assert fault is not None
    assert [thread["isMain"] for thread in fault.dump["threads"]] == [False, False, True]
    assert fault.place == ("crash", "/code/load.py", 7)


def test_what_the_programs_own_handler_wrote_is_found_where_our_file_points(tmp_path: Path) -> None:
    log, ours = tmp_path / "worker.err", tmp_path / "fault"
    log.write_text(f"{SEGV}of an earlier run\n")
    start = log.stat().st_size
    ours.write_bytes(fault_pointer(str(log), start))
    assert fault_text.read(ours) is None
    with log.open("a") as file:
        file.write(f"a line\n{ALONE}")
    fault = fault_text.read(ours)
    assert fault is not None
    assert (fault.signal, fault.place) == ("SIGSEGV", ("step", "/code/train.py", 9))
    ours.write_bytes(ours.read_bytes() + TERM.encode())
    assert (found := fault_text.read(ours)) is not None and found.is_fatal
    log.unlink()
    assert (found := fault_text.read(ours)) is not None and not found.is_fatal


@pytest.mark.parametrize("text", ["", "no such text", "Extension modules: x\n"])
def test_nothing_is_nothing(text: str, tmp_path: Path) -> None:
    assert fault_text.parse(text) is None
    assert fault_text.read(tmp_path / "absent") is None


@pytest.mark.parametrize("end", range(0, len(SEGV), 7))
def test_a_torn_text_is_read_as_far_as_it_goes(end: int) -> None:
    fault = fault_text.parse(SEGV[:end])
    if fault is not None:
        member = KeptMember(0, {"failed": True}, lambda: repaired(fault.dump))
        assert member._on_exceptionInfo({})["exceptionId"]
        member._on_stackTrace({"threadId": 1})
