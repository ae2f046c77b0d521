"""What holds for every test: the core marker, and that no test leaves a process behind."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import psutil
import pytest

MARK = "RANKSCOPE_TEST"
"""Environment variable inherited by all that a test starts, daemons that left its process tree included."""

END_WITHIN = 10.0
"""Seconds a process may still take to end after its test is over."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as ``core`` what needs neither Ray nor torch, before ``-m`` selects."""
    for item in items:
        if not any(item.get_closest_marker(name) for name in ("ray", "torch")):
            item.add_marker(pytest.mark.core)


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test that leaves a process behind, and end that process."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    before = set(psutil.Process().children(recursive=True))
    yield
    started = {*psutil.Process().children(recursive=True), *_marked(mark)} - before
    _, alive = psutil.wait_procs([process for process in started if not _is_tracker(process)], timeout=END_WITHIN)
    told = [_describe(process) for process in alive]
    for process in alive:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            pass
    if told:
        pytest.fail("processes are left behind:\n" + "\n".join(told), pytrace=False)


def _marked(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                found.append(process)
        except psutil.Error:
            continue
    return found


def _is_tracker(process: psutil.Process) -> bool:
    """multiprocessing's resource tracker, which lives as long as the process that started it."""
    try:
        return any("resource_tracker" in word for word in process.cmdline())
    except psutil.Error:
        return False


def _describe(process: psutil.Process) -> str:
    try:
        return f"  {process.pid} ({process.status()}): {' '.join(process.cmdline())}"
    except psutil.Error:
        return f"  {process.pid}"
