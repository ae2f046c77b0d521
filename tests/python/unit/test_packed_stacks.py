"""Every thread's frames in few bytes, as the hub reads them."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rankscope.agent import packed_stacks, stacks
from rankscope.hub.stacks import Reader, Thread

SOURCE = """
import threading

class Loud:
    def __repr__(self):
        raise AssertionError("its __repr__ was called")

def deep(depth, ready, may_end):
    if depth:
        deep(depth - 1, ready, may_end)
    else:
        ready.set()
        may_end.wait(10)

def waits(ready, may_end):
    loud, step, names, password = Loud(), 3, ["a"] * 5, "hunter2"
    ready.set()
    may_end.wait(10)
"""


@pytest.fixture
def program(tmp_path: Path) -> ModuleType:
    """A module of a person's: this file itself lies where RankScope's tests do."""
    module = ModuleType("program")
    path = tmp_path / "program.py"
    path.write_text(SOURCE)
    exec(compile(SOURCE, str(path), "exec"), module.__dict__)
    return module


@contextlib.contextmanager
def running(target: Callable[..., None], *arguments: Any, name: str = "Thread-3 (waits)") -> Iterator[None]:
    ready, may_end = threading.Event(), threading.Event()
    thread = threading.Thread(target=target, args=(*arguments, ready, may_end), name=name)
    thread.start()
    ready.wait(10)
    try:
        yield
    finally:
        may_end.set()
        thread.join()


def read(answer: dict[str, Any]) -> dict[str, Thread]:
    return {thread.name: thread for thread in Reader(str).read(answer)}


def test_frames_are_outermost_first_and_the_main_thread_has_no_name(program: ModuleType) -> None:
    with running(program.waits):
        threads = read(packed_stacks.packed())
    qualified = sys.version_info >= (3, 11)
    assert next(iter(threads)) == ""
    here = "test_frames_are_outermost_first_and_the_main_thread_has_no_name"
    assert here in [frame[0] for frame in threads[""].frames]
    waits = threads["Thread (waits)"]
    names = [name for name, *_ in waits.frames]
    assert names[:2] == (["Thread._bootstrap", "Thread._bootstrap_inner"] if qualified else names[:2])
    own = waits.innermost_own
    assert own is not None
    name, path, line, kind = waits.frames[own]
    assert (name, path, kind) == ("waits", program.waits.__code__.co_filename, "own")
    assert SOURCE.splitlines()[line - 1].strip() == "may_end.wait(10)"
    assert waits.call.endswith("wait")
    assert {kind for *_, kind in waits.frames[own + 1 :]} == {"library"}


def test_equal_stacks_give_equal_bytes(program: ModuleType) -> None:
    answers = []
    with running(program.waits):
        for _ in range(2):
            answers.append(packed_stacks.packed()["packed"])  # noqa: PERF401 - on one line
    assert answers[0] == answers[1]


def test_a_deep_stack_keeps_both_its_ends(program: ModuleType) -> None:
    with running(program.deep, 500, name="deep"):
        frames = read(packed_stacks.packed())["deep"].frames
    assert len(frames) == 201
    assert frames[150][0].startswith("… ") and frames[150][0].endswith(" frames left out")
    assert frames[149][0] == frames[151][0] == "deep"
    assert frames[0][0].endswith("_bootstrap") and frames[-1][0].endswith("wait")


def test_locals_are_of_the_innermost_own_frame_and_no_code_of_theirs_runs(program: ModuleType) -> None:
    with running(program.waits):
        answer = packed_stacks.packed(with_locals=True)
        threads = list(Reader(str).read(answer))
    number = [thread.name for thread in threads].index("Thread (waits)")
    found = {name: text for at, names in answer["locals"] if at == number for name, text in names}
    assert found["step"] == "3"
    assert found["names"] == "list of 5"
    assert found["loud"] == "<program.Loud>"
    assert "hunter2" not in str(answer["locals"])
    assert "locals" not in packed_stacks.packed()


def test_frames_of_the_debugger_and_of_rankscope_are_left_out(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = ModuleType("wrapper")
    source = "def inside(call, *rest):\n    call(*rest)\n"
    folder = tmp_path / "debugpy" / "_vendored" / "pydevd"
    exec(compile(source, str(folder / "pydevd.py"), "exec"), wrapper.__dict__)
    with running(wrapper.inside, program.waits, name="traced"):
        traced = read(packed_stacks.packed())["traced"]
        monkeypatch.setattr(stacks, "_OURS", str(tmp_path / "program"))
        ours = read(packed_stacks.packed())["traced"]
    assert "inside" not in [name for name, *_ in traced.frames]
    assert "waits" in [name for name, *_ in traced.frames]
    assert "waits" not in [name for name, *_ in ours.frames]


def test_too_many_threads_are_counted(program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_stacks, "_MAX_THREADS", 1)
    with running(program.waits):
        names = list(read(packed_stacks.packed()))
    assert names[0] == ""
    assert names[1].startswith("… ") and names[1].endswith(" threads left out")


def test_without_packed_the_answer_is_the_plain_one() -> None:
    assert packed_stacks.answer({})["threads"][0]["is_main"]
    assert isinstance(packed_stacks.answer({"packed": True})["packed"], bytes)
