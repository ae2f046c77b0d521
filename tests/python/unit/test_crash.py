"""What the agent's side does with a failure."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from rankscope.agent import agent as agents
from rankscope.agent import crash
from rankscope.wire import messages as m

pytestmark = pytest.mark.core


class Batch:
    """Something big that an exception's frames hold."""


class FakeAgent(SimpleNamespace):
    """An agent whose hub answers at once that nobody is held."""

    def __init__(self) -> None:
        super().__init__(settings=None, verdicts={}, sent=[], facts=SimpleNamespace(role="rank"), is_linked=True)

    def await_link(self, _seconds: float) -> bool:
        return True

    def send(self, message: m.Message) -> None:
        self.sent.append(message)
        if isinstance(message, m.FailedDump):
            self.verdicts[message.ask].put(False)

    def notice(self, level: str, text: str) -> None:
        self.sent.append((level, text))


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> FakeAgent:
    fake = FakeAgent()
    monkeypatch.setattr(agents, "current", fake)
    crash.forget()
    return fake


def fail(refs: list[Any]) -> None:
    batch = Batch()
    refs.append(weakref.ref(batch))
    raise ValueError("bad batch")


def test_a_failure_is_told_once_and_keeps_nothing_alive(agent: FakeAgent) -> None:
    refs: list[Any] = []
    try:
        fail(refs)
    except ValueError as e:
        crash.failed(e, "raised in a Ray task")
        crash.failed(e, "uncaught")
    [failed] = [message for message in agent.sent if isinstance(message, m.Failed)]
    [dumped] = [message for message in agent.sent if isinstance(message, m.FailedDump)]
    assert failed.about["text"] == "ValueError: bad batch"
    assert dumped.dump["exception"]["message"] == "bad batch"
    gc.collect()
    assert refs[0]() is None


def test_alike_failures_are_told_three_times_and_then_said_to_be_left_out(agent: FakeAgent) -> None:
    for _ in range(6):
        try:
            fail([])
        except ValueError as e:
            crash.failed(e, "raised in a Ray task")
            crash._told = None
    assert sum(isinstance(message, m.Failed) for message in agent.sent) == 3
    assert sum(isinstance(message, tuple) for message in agent.sent) == 1
