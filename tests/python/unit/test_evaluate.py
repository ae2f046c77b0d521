"""What a rank answers: an expression aside of its stopped thread, a look at one that runs, values in one line, |Δ|."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest

from rankscope.agent import agent as agents
from rankscope.agent import delta, evaluate, lookup, shown
from rankscope.wire import messages as m


class FakeAgent:
    """Holds what would go to the hub."""

    def __init__(self) -> None:
        self.sent: SimpleQueue[m.Reply] = SimpleQueue()
        self.answers: dict[str, Any] = {}
        self.released_hooks: list[Any] = []

    def send(self, message: m.Reply) -> None:
        self.sent.put(message)


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAgent]:
    fake = FakeAgent()
    monkeypatch.setattr(agents, "current", fake)
    monkeypatch.setattr(evaluate, "_stuck", [])
    yield fake
    delta._kept.clear()


def asked(agent: FakeAgent, expression: str, names: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The answer as it arrives at the hub; the calling thread is not kept."""
    question = json.dumps({"expression": expression, "seconds": 10.0, **more})
    exec("start(7, question)", {"start": evaluate.start, "question": question, **(names or {})})
    reply = agent.sent.get(timeout=20)
    assert (reply.ask, reply.error) == (7, "")
    return reply.body


# --- evaluating -----------------------------------------------------------------------------------


def test_an_expression_sees_the_frames_names(agent: FakeAgent) -> None:
    found = asked(agent, "[x + y for x in (1, 2)][1]", {"y": 0.5})
    assert found == {"kind": "number", "text": "2.5", "type": "float", "value": 2.5}
    assert asked(agent, "(x := 3) + x")["value"] == 6


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("nothing", "NameError: name 'nothing' is not defined"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("exit(3)", "SystemExit: 3"),
        ("int('x' * 10_000_000)", "ValueError: "),
    ],
)
def test_an_exception_is_an_answer(agent: FakeAgent, expression: str, text: str) -> None:
    found = asked(agent, expression)
    assert found["kind"] == "error"
    assert found["text"].startswith(text)
    assert len(found["text"]) < 5_000


def test_what_cannot_be_compiled_is_an_answer(agent: FakeAgent) -> None:
    assert asked(agent, "x = 3")["text"].startswith("SyntaxError: ")


def counts() -> None:
    number = 0
    while True:
        number += 1


@pytest.mark.parametrize("expression", ["[0 for n in count() if n < 0]", "counts()", "[str(n) for n in count()]"])
def test_an_expression_in_python_that_is_late_is_ended(agent: FakeAgent, expression: str) -> None:
    found = asked(agent, expression, {"count": itertools.count, "counts": counts}, seconds=0.1)
    assert found == {"kind": "late", "text": "not evaluated within 0.1 s; it was told to stop", "type": ""}
    for thread in threading.enumerate():
        if thread.name in ("rankscope-evaluate", "rankscope-answer"):
            thread.join(10)
            assert not thread.is_alive()
    assert not evaluate._stuck


def test_stuck_expressions_are_bounded_and_hold_nobody(agent: FakeAgent) -> None:
    never = threading.Event()
    try:
        for _ in range(evaluate.MAX_STUCK):
            assert asked(agent, "never.wait()", {"never": never}, seconds=0.05)["kind"] == "late"
        for thread in threading.enumerate():
            if thread.name == "rankscope-answer":
                thread.join(10)
        refused = asked(agent, "1 + 1")
        assert refused["text"] == "4 expressions that were asked before are still stuck in this process"
    finally:
        never.set()
    for thread in evaluate._stuck:
        thread.join(10)
    assert asked(agent, "1 + 1")["value"] == 2


# --- values in one line ---------------------------------------------------------------------------


class Plain:
    """Its repr has an address."""


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (3, "number", "3"),
        (0.1, "number", "0.1"),
        (math.nan, "number", "nan"),
        (True, "text", "True"),
        (None, "text", "None"),
        ("a\nb", "text", "'a\\nb'"),
        ({"b": [1, (2, None)]}, "text", "{'b': [1, (2, None)]}"),
        (10**400, "text", None),
        (list(range(40)), "text", None),
    ],
)
def test_a_value_is_a_number_or_a_line(value: Any, kind: str, text: str | None) -> None:
    found = shown.answer(value)
    assert found["kind"] == kind
    assert text in (None, found["text"])
    assert len(found["text"]) < 500


def test_no_address_is_told() -> None:
    assert shown.text_of(Plain()) == shown.text_of(Plain())
    assert "0x" not in shown.text_of([Plain(), {"a": Plain()}])


def test_long_texts_are_told_apart() -> None:
    first, second = (shown.answer("x" * 1_000_000 + end)["text"] for end in "ab")
    assert len(first) < shown.MAX_TEXT + 100
    assert first != second
    assert "(1,000,001 in all, " in first


# --- a rank that runs -----------------------------------------------------------------------------


class Config:
    """Has a plain attribute, a slot of the class, and what must not be called."""

    depth = 2

    def __init__(self) -> None:
        self.rate = 0.5

    @property
    def computed(self) -> int:
        raise AssertionError("a property must not be called")


def looked_up(expression: str, **more: Any) -> dict[str, Any]:
    """As the agent's thread is asked, while the main thread is here."""
    config, rows, name = Config(), [{"a": 1}, {"a": 2}], "here"
    del_me = (config, rows, name)
    found: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: found.append(lookup.answer({"expression": expression, **more})))
    thread.start()
    thread.join(10)
    assert del_me
    return found[0]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("config.rate", "0.5"),
        ("config.depth", "2"),
        ("rows[1]['a']", "2"),
        ("name", "'here'"),
        ("rows", "list of 2"),
        ("math.pi", repr(math.pi)),
        ("rows[7]", "IndexError: list index out of range"),
        ("config.missing", "AttributeError: 'test_evaluate.Config' object has no attribute 'missing'"),
    ],
)
def test_a_running_rank_is_looked_into(expression: str, text: str) -> None:
    found = looked_up(expression, name="looked_up", paths=[__file__])
    assert found["frame"]["name"] == "looked_up"
    assert found["text"].replace(f"{__name__}.", "test_evaluate.") == text


@pytest.mark.parametrize(
    "expression", ["config.computed", "len(rows)", "name + name", "rows[0:1]", "[name]", "rows[x]", "other"]
)
def test_nothing_is_called_in_a_running_rank(expression: str) -> None:
    found = looked_up(expression, name="looked_up", paths=[__file__])
    assert "kind" not in found
    assert found["frame"]["name"] == "looked_up"


def test_a_function_that_does_not_run_is_not_found() -> None:
    assert looked_up("name", name="elsewhere", paths=[__file__]).keys() == {"call"}


# --- |Δ| ------------------------------------------------------------------------------------------


def later(agent: FakeAgent, what: str, **arguments: Any) -> m.Reply:
    assert agent.answers[what]({"reply": 9, **arguments}) == {}
    return agent.sent.get(timeout=20)


@pytest.mark.parametrize(
    ("mine", "theirs", "told"),
    [
        ([1.0, 2.0, 3.0], [1.0, 2.5, 3.0], {"max": 0.5, "at": 1, "sum": 0.5, "nan": 0}),
        ([math.inf, math.nan, 1.0], [math.inf, math.nan, 1.0], {"max": 0.0, "at": 0, "sum": 0.0, "nan": 0}),
        ([1.0, math.nan, 3.0], [2.0, 2.0, 3.0], {"max": 1.0, "at": 1, "sum": 1.0, "nan": 1}),
        ([math.inf, 1.0], [-math.inf, 1.0], {"max": math.inf, "at": 0, "sum": math.inf, "nan": 0}),
    ],
)
def test_differences_of_arrays(mine: list[float], theirs: list[float], told: dict[str, Any]) -> None:
    numpy = pytest.importorskip("numpy")
    assert delta.difference(numpy, numpy.array(mine), numpy.array(theirs)) == told


@pytest.mark.torch
def test_tensors_are_compared_in_chunks_across_dtypes_and_layouts(agent: FakeAgent) -> None:
    torch = pytest.importorskip("torch")
    reference = torch.arange(12, dtype=torch.bfloat16).reshape(3, 4)
    mine = torch.arange(12, dtype=torch.float64).reshape(3, 4).t().contiguous().t()
    mine[1, 2] = -6.0
    delta.keep("reference", reference)
    delta.keep("mine", mine)
    chunk = later(agent, "chunk", keep="reference", start=4, count=8).body
    assert (len(chunk["data"]), chunk["isDouble"]) == (32, False)
    found = later(agent, "delta", keep="mine", start=4, **chunk).body
    assert found == {"max": 12.0, "at": 2, "sum": 12.0, "nan": 0}


def test_what_is_kept_is_bounded_and_released(agent: FakeAgent) -> None:
    numpy = pytest.importorskip("numpy")
    for number in range(delta.MAX_KEPT + 2):
        delta.keep(str(number), numpy.arange(3))
    assert list(delta._kept) == ["2", "3", "4", "5"]
    agent.answers["release"]({"keep": "3"})
    assert "3" not in delta._kept
    with pytest.raises(delta.NotComparableError):
        later(agent, "chunk", keep="3", start=0, count=1)
    agent.released_hooks[0]()
    assert not delta._kept


def test_what_has_no_numbers_is_not_kept(agent: FakeAgent) -> None:
    numpy = pytest.importorskip("numpy")
    delta.keep("words", numpy.array(["a"]))
    delta.keep("thing", SimpleNamespace())
    assert not delta._kept
    assert agent.answers == {}


@pytest.mark.torch
def test_an_expression_keeps_its_tensor_when_asked(agent: FakeAgent) -> None:
    torch = pytest.importorskip("torch")
    found = asked(agent, "weight * 2", {"weight": torch.ones(2, 3)}, keep="k")
    assert (found["kind"], found["tensor"]["shape"]) == ("tensor", [2, 3])
    assert found["tensor"]["digest"]
    assert later(agent, "chunk", keep="k", start=0, count=9).body["data"] == b"\x00\x00\x00@" * 6


@pytest.mark.torch
@pytest.mark.parametrize(("value", "text"), [(0.1, "0.100000001"), (math.nan, "nan"), (-math.inf, "-inf"), (3, "3")])
def test_a_tensor_without_dimensions_is_a_number(agent: FakeAgent, value: float, text: str) -> None:
    torch = pytest.importorskip("torch")
    found = asked(agent, "loss", {"loss": torch.tensor(value)})
    assert (found["kind"], found["text"]) == ("number", text)
    assert found["tensor"]["shape"] == []


@pytest.mark.torch
def test_the_modes_of_the_stopped_thread_hold(agent: FakeAgent) -> None:
    torch = pytest.importorskip("torch")
    with torch.no_grad():
        assert asked(agent, "torch.is_grad_enabled()", {"torch": torch})["text"] == "False"
    assert asked(agent, "torch.is_grad_enabled()", {"torch": torch})["text"] == "True"


def test_the_answer_does_not_wait_for_the_calling_thread(agent: FakeAgent) -> None:
    started = time.monotonic()
    exec(
        "start(7, question)",
        {
            "start": evaluate.start,
            "question": json.dumps({"expression": "e.wait()", "seconds": 30.0}),
            "e": (e := threading.Event()),
        },
    )
    assert time.monotonic() - started < 10
    e.set()
    assert agent.sent.get(timeout=20).body["text"] == "True"


@pytest.mark.torch
def test_an_expression_loads_no_compiler() -> None:
    code = """
import sys, torch, torch.distributed
from rankscope.agent import nets
weight = torch.ones(4)
with nets.Net().cast():
    weight.double().sum()
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
