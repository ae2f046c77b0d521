"""What is kept of a process: bounded whatever its values are, and without running any of its code."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref
from collections import OrderedDict, deque
from enum import Enum
from pathlib import Path
from typing import Any

import msgpack
import pytest

from rankscope.postmortem import dump
from rankscope.postmortem.values import DEFAULT_LIMITS, MASK, Keeper, Limits, Node, is_secret

pytestmark = pytest.mark.core


def is_user(path: str) -> bool:
    return path == __file__


def kept(limits: Limits = DEFAULT_LIMITS, **values: Any) -> tuple[dict[str, Node], Keeper]:
    """The nodes of values, by name."""
    keeper = Keeper(limits)
    scope = keeper.keep_named(values)
    keeper.run()
    msgpack.packb(keeper.nodes)
    return {name: keeper.nodes[number] for name, number in scope["kids"]}, keeper


class Color(Enum):
    RED = 1


class Slotted:
    __slots__ = ("first", "never")

    def __init__(self) -> None:
        self.first = 1


class Big:
    """What a frame holds."""


class Hostile:
    """Everything that may be overridden raises or blocks."""

    def __init__(self) -> None:
        self.inner = "kept"

    def __repr__(self) -> str:
        raise SystemExit("repr was called")

    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(f"{name} was asked for")

    def __len__(self) -> int:
        raise SystemExit("len was called")

    def __hash__(self) -> int:
        raise SystemExit("hash was called")

    def __eq__(self, other: object) -> bool:
        raise SystemExit("eq was called")


class Sleepy:
    @property
    def slow(self) -> int:
        time.sleep(60)
        return 1

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        time.sleep(60)
        return int


class LyingDict(dict[str, int]):
    def __len__(self) -> int:
        raise ValueError("no length")

    def items(self) -> Any:
        raise ValueError("no items")


def test_plain_values_are_shown_as_they_are() -> None:
    nodes, _ = kept(a=1, b="text", c=None, d=1.5, e=b"xy", path=Path("/a"), kind=int, f=len, color=Color.RED)
    assert [nodes[name]["text"] for name in "abcde"] == ["1", "'text'", "None", "1.5", "b'xy'"]
    assert nodes["kind"]["text"] == "<class 'int'>"
    assert "path" in nodes


def test_containers_unfold() -> None:
    nodes, keeper = kept(
        d={"a": 1, ("t", 2): 3}, o=OrderedDict(x=1), l=[1, [2]], t=(1,), s={1}, q=deque([1]), slotted=Slotted()
    )
    assert [name for name, _ in nodes["d"]["kids"]] == ["['a']", "[('t', 2)]"]
    assert nodes["l"]["text"] == "list of 2"
    inner = keeper.nodes[nodes["l"]["kids"][1][1]]
    assert keeper.nodes[inner["kids"][0][1]]["text"] == "2"
    assert [name for name, _ in nodes["slotted"]["kids"]] == ["first"]


def test_no_code_of_the_values_runs() -> None:
    started = time.monotonic()
    nodes, keeper = kept(hostile=Hostile(), sleepy=Sleepy(), lying=LyingDict(a=1))
    assert time.monotonic() - started < 5
    assert keeper.nodes[nodes["hostile"]["kids"][0][1]]["text"] == "'kept'"
    assert nodes["lying"]["text"].endswith("of 1")
    assert nodes["sleepy"]["text"].startswith("<")


def test_the_same_object_is_kept_once_and_a_circle_ends() -> None:
    circle: list[Any] = []
    circle.append(circle)
    nodes, keeper = kept(a=circle, b=circle)
    assert nodes["a"] is nodes["b"]
    assert len(keeper.nodes) == 1


def test_big_values_are_cut_and_counted() -> None:
    big = {number: str(number) for number in range(300_000)}
    nodes, keeper = kept(big=big, text="x" * 100_000, number=10**6000, deep=[[[[[[[[[[[1]]]]]]]]]]])
    assert nodes["big"]["more"] == 300_000 - 100
    assert len(nodes["big"]["kids"]) == 100
    assert nodes["text"]["text"].endswith("… (100,000 in all)")
    assert "bits" in nodes["number"]["text"]
    assert {"width", "text", "depth"} <= set(keeper.cut)
    assert len(msgpack.packb(keeper.nodes)) < 100_000


@pytest.mark.parametrize(
    ("limits", "reason"),
    [(Limits(values=50), "values"), (Limits(bytes=500), "size"), (Limits(seconds=0.0), "time")],
)
def test_every_limit_holds_and_says_so(limits: Limits, reason: str) -> None:
    _, keeper = kept(limits, many=[[[number] for number in range(90)] for _ in range(90)])
    assert keeper.cut[reason] > 0
    assert len(keeper.nodes) < 10_000


def test_secrets_are_masked_wherever_they_are() -> None:
    nodes, keeper = kept(api_key="k", config={"db_password": "p", "tokens": 3}, tokenizer="t", n_tokens=5)
    assert nodes["api_key"]["text"] == MASK
    assert "'p'" not in str(keeper.nodes)
    assert nodes["tokenizer"]["text"] == "'t'"


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("HF_TOKEN", True), ("aws_secret_access_key", True), ("auth", True), ("tokenizer", False), ("author", False)],
)
def test_names_that_look_like_secrets(name: str, is_one: bool) -> None:
    assert is_secret(name) is is_one


# --- whole dumps ----------------------------------------------------------------------------------


def caught(work: Any) -> BaseException:
    try:
        work()
    except BaseException as e:
        return e
    raise AssertionError("it did not raise")


def test_a_dump_has_the_chain_the_frames_and_their_locals() -> None:
    def inner(batch: int) -> None:
        raise ValueError(f"bad batch {batch}")

    def outer() -> None:
        step = 7
        try:
            inner(step + 1)
        except ValueError as e:
            raise RuntimeError("step failed") from e

    found = dump.of_exception(caught(outer), is_user)
    assert found["exception"]["type"] == "RuntimeError"
    cause = found["exception"]["cause"]
    assert (cause["type"], cause["message"]) == ("ValueError", "bad batch 8")
    raising = found["frames"][cause["frames"][-1]]
    assert raising["name"].endswith("inner")
    scope = found["nodes"][raising["locals"]]
    assert found["nodes"][dict(scope["kids"])["batch"]]["text"] == "8"
    failing = next(thread for thread in found["threads"] if thread["isFailing"])
    assert found["frames"][failing["frames"][0]]["name"].endswith("outer")
    assert found["sources"][__file__]["text"].startswith('"""What is kept')
    assert len(msgpack.packb(found)) < 4 << 20


def test_other_threads_are_where_they_are() -> None:
    is_there, may_go = threading.Event(), threading.Event()

    def waits_here() -> None:
        is_there.set()
        may_go.wait(30)

    thread = threading.Thread(target=waits_here, name="loader")
    thread.start()
    try:
        assert is_there.wait(10)
        found = dump.of_now(is_user)
    finally:
        may_go.set()
        thread.join()
    loader = next(thread for thread in found["threads"] if thread["name"] == "loader")
    names = [found["frames"][number]["name"].rpartition(".")[2] for number in loader["frames"]]
    assert "waits_here" in names
    assert found["exception"] is None


def test_a_frame_that_goes_on_neither_keeps_values_alive_nor_loses_the_persons_own_locals() -> None:
    is_there, may_go = threading.Semaphore(0), threading.Semaphore(0)
    found: list[Any] = []

    def works() -> None:
        batch = Slotted()
        mine = locals()
        is_there.release()
        may_go.acquire(timeout=30)
        found.extend((mine.get("batch") is batch, set(mine) >= {"batch"}))

    def holds() -> None:
        batch = Big()
        found.append(weakref.ref(batch))
        is_there.release()
        may_go.acquire(timeout=30)
        del batch
        is_there.release()
        may_go.acquire(timeout=30)

    threads = [threading.Thread(target=work) for work in (works, holds)]
    for thread in threads:
        thread.start()
        assert is_there.acquire(timeout=30)
    dump.of_now(is_user)
    may_go.release(2)
    assert is_there.acquire(timeout=30)
    gc.collect()
    is_gone = found[0]() is None
    may_go.release(2)
    for thread in threads:
        thread.join()
    assert is_gone
    assert found[1:] == [True, True]


def test_a_very_deep_stack_keeps_both_ends() -> None:
    def dive(depth: int) -> None:
        dive(depth + 1)

    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        error = caught(lambda: dive(0))
    finally:
        sys.setrecursionlimit(before)
    found = dump.of_exception(error, is_user)
    assert found["exception"]["type"] == "RecursionError"
    assert len(found["exception"]["frames"]) == 150
    assert found["cut"]["frames"] > 9_000


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exception groups are of 3.11")
def test_an_exception_group_names_its_members() -> None:
    def both() -> None:
        group = ExceptionGroup("two", [ValueError("a"), KeyError("b")])  # type: ignore[name-defined,unused-ignore]  # noqa: F821
        group.add_note("a note")
        raise group

    found = dump.of_exception(caught(both), is_user)["exception"]
    assert [member["type"] for member in found["members"]] == ["ValueError", "KeyError"]
    assert found["notes"] == ["a note"]


def test_a_message_that_blocks_or_raises_does_no_harm() -> None:
    class BlocksError(Exception):
        def __str__(self) -> str:
            threading.Event().wait(60)
            return ""

    class RaisesError(Exception):
        def __str__(self) -> str:
            raise KeyError("no")

    started = time.monotonic()
    assert dump.message_of(BlocksError()) == "(its __str__ did not answer)"
    assert dump.message_of(RaisesError()) == "(its __str__ raised KeyError)"
    assert dump.message_of(KeyError("k")) == "'k'"
    assert time.monotonic() - started < 10


def test_an_exception_that_is_its_own_cause_ends() -> None:
    def circle() -> None:
        error = ValueError("x")
        error.__cause__ = error
        raise error

    assert "cause" not in dump.of_exception(caught(circle), is_user)["exception"]


def test_the_environment_is_kept_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_1")
    monkeypatch.setenv("RANK", "2")
    env = dump.of_now(is_user)["env"]
    assert (env["HF_TOKEN"], env["RANK"]) == (MASK, "2")
