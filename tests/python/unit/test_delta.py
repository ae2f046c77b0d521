"""The largest |Δ| against a reference as the hub gathers it, from ranks that are objects of this process."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rankscope.dap.messages import DapError
from rankscope.hub import compare, delta


class Rank:
    """Answers ``chunk`` and ``delta`` for a row of numbers; ``fails`` names what it cannot do."""

    def __init__(self, *numbers: float, fails: str = "") -> None:
        self.label = "world 0"
        self.numbers = numbers
        self.fails = fails
        self.asked: list[str] = []
        self._replies: dict[int, dict[str, Any]] = {}

    async def ask(self, what: str, arguments: dict[str, Any], *, timeout: float = 3.0) -> dict[str, Any]:
        self.asked.append(what)
        if what == self.fails:
            raise DapError("it cannot")
        if what == "chunk":
            part = self.numbers[arguments["start"] : arguments["start"] + arguments["count"]]
            self._replies[arguments["reply"]] = {"data": struct.pack(f"{len(part)}f", *part), "isDouble": False}
        elif what == "delta":
            theirs = struct.unpack(f"{len(arguments['data']) // 4}f", arguments["data"])
            mine = self.numbers[arguments["start"] :]
            gaps = [abs(a - b) for a, b in zip(mine, theirs, strict=False)]
            largest = max(gaps)
            self._replies[arguments["reply"]] = {"max": largest, "at": gaps.index(largest), "sum": sum(gaps), "nan": 0}
        return {}

    async def replied(self, begin: Callable[[int], Awaitable[object]], *, timeout: float) -> dict[str, Any]:
        await begin(1)
        return self._replies.pop(1)


def row(name: str, shape: list[int], digest: str = "", **facts: Any) -> compare.Row:
    tensor = {"shape": shape, "dtype": "float32", "digest": digest, **facts}
    return compare.row({"member": name}, {"kind": "tensor", "text": "Tensor", "type": "", "tensor": tensor})


def deltas(ranks: dict[str, Rank], *rows: compare.Row) -> dict[str, Any]:
    asyncio.run(delta.add(rows, ranks, "a", "word"))  # type: ignore[arg-type]
    assert all(rank.asked[-1] == "release" for rank in ranks.values())
    return {one["member"]: one.get("delta") for one in rows}


def test_chunks_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "CHUNK", 4)
    ranks = {"a": Rank(*range(10)), "b": Rank(*range(9), 11.0), "c": Rank(*range(10))}
    found = deltas(ranks, row("a", [2, 5]), row("b", [2, 5]), row("c", [2, 5], placement="S(0)", local=[2, 5]))
    assert found["a"] is None
    assert found["b"] == {"max": 2.0, "mean": 0.2, "index": [1, 4], "nan": 0, "note": None}
    assert found["c"] == {"max": 0.0, "mean": 0.0, "index": [0, 0], "nan": 0, "note": "of local shards"}
    assert ranks["a"].asked == ["chunk", "chunk", "chunk", "release"]


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "MAX_ELEMENTS", 6)
    found = deltas({"a": Rank(*range(10)), "b": Rank(*range(1, 11))}, row("a", [10]), row("b", [10]))
    assert found["b"]["note"] == "of the first 6 of 10 elements"
    assert found["b"]["mean"] == 1.0


def test_equal_digests_need_no_look_and_other_shapes_are_refused() -> None:
    ranks = {"a": Rank(1.0), "b": Rank(1.0), "c": Rank(1.0)}
    found = deltas(ranks, row("a", [1], "xxh3:0"), row("b", [1], "xxh3:0"), row("c", [1, 1], "xxh3:0"))
    assert (found["b"]["max"], found["c"]["max"]) == (0.0, None)
    assert found["c"]["note"] == "its shape is [1, 1], the reference's [1]"
    assert ranks["b"].asked == ["release"]


@pytest.mark.parametrize(("who", "note"), [("a", "world 0, the reference: it cannot"), ("b", "it cannot")])
def test_who_fails_is_said(who: str, note: str) -> None:
    ranks = {name: Rank(1.0, fails="chunk" if who == "a" else "delta") if name == who else Rank(1.0) for name in "abc"}
    found = deltas(ranks, *(row(name, [1]) for name in "abc"))
    assert found["b"]["note"] == note
    assert found["c"]["note"] == (note if who == "a" else None)


def test_a_reference_that_is_no_tensor() -> None:
    ranks = {"b": Rank(1.0)}
    text = compare.row({"member": "a"}, {"kind": "text", "text": "x"})
    assert deltas(ranks, text, row("b", [1]))["b"]["note"] == "the reference has no number and no tensor"
