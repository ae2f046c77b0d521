"""Answers of many ranks side by side: rows of whatever came, groups, statistics, sentences; guessed side effects."""

from __future__ import annotations

import json
import math
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankscope.hub import compare, side_effects

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
KEYS = st.sampled_from(["kind", "text", "type", "value", "tensor", "frame"])
KINDS = st.sampled_from(compare.KINDS)


def number(rank: int, value: float) -> compare.Row:
    return compare.row(about(rank), {"kind": "number", "text": repr(value), "type": "float", "value": value})


def text(rank: int, said: str, kind: str = "text") -> compare.Row:
    return compare.row(about(rank), {"kind": kind, "text": said, "type": "str"})


def tensor(rank: int, digest: str, low: float = 0.0, device: str = "cpu", **more: Any) -> compare.Row:
    facts = {"shape": [2], "dtype": "float32", "device": device, "digest": digest, **more}
    told = {"kind": "tensor", "text": f"Tensor 2 float32 {device} · min {low}", "type": "torch.Tensor", "tensor": facts}
    return compare.row(about(rank), told)


def about(rank: int) -> dict[str, Any]:
    return {"member": f"m{rank}", "label": f"world {rank}", "rank": rank}


def write(rows: Any) -> str:
    return ",".join(str(row["rank"]) for row in rows)


def grouped(*rows: compare.Row) -> list[tuple[str, str, bool]]:
    return [(group["ranks"], group["text"], group["isMajority"]) for group in compare.groups(rows, write)]


# --- rows -----------------------------------------------------------------------------------------


@given(JSON | st.dictionaries(KEYS, JSON | KINDS))
def test_whatever_comes_makes_a_bounded_row_that_json_can_hold(answer: Any) -> None:
    row = compare.row(about(0), answer)
    assert row["kind"] in compare.KINDS
    assert len(row["text"]) <= compare.MAX_TEXT
    json.dumps(row, allow_nan=False)
    [group] = compare.groups([row], write)
    assert group["count"] == 1
    compare.statistics_of([row])


@pytest.mark.parametrize(
    "answer", [None, {}, "text", {"kind": "number", "text": "3"}, {"kind": "other", "text": "x"}, {"kind": "text"}]
)
def test_garbage_is_an_error_of_its_rank(answer: Any) -> None:
    row = compare.row(about(1), answer)
    assert row["kind"] == "error"
    assert row["error"].startswith("its answer cannot be read (")


def test_megabytes_are_cut() -> None:
    row = compare.row(about(0), {"kind": "text", "text": "x" * 10_000_000, "tensor": {"shape": [1] * 1_000_000}})
    assert len(json.dumps(row)) < 10_000


# --- groups ---------------------------------------------------------------------------------------


def test_equal_answers_come_together_the_majority_first() -> None:
    rows = [number(0, 1.5), number(1, math.nan), number(2, 1.5), text(3, "no answer", "late"), number(4, 1.5)]
    assert grouped(*rows) == [("0,2,4", "1.5", True), ("1", "nan", False), ("3", "no answer", False)]


def test_silence_is_no_majority_and_stands_last() -> None:
    rows = [text(0, "in all_reduce", "running"), text(1, "in all_reduce", "running"), number(2, 1.0)]
    assert grouped(*rows) == [("2", "1.0", True), ("0,1", "in all_reduce", False)]


def test_of_two_halves_none_is_the_majority() -> None:
    assert [majority for *_, majority in grouped(number(0, 1.0), number(1, 2.0))] == [False, False]


def test_tensors_are_equal_by_digest_whatever_their_device() -> None:
    same = [tensor(rank, "xxh3:0123456789ab", device=f"cuda:{rank}") for rank in range(2)]
    groups = grouped(*same, tensor(2, "xxh3:ff", device="cuda:2"))
    assert groups == [
        ("0,1", "Tensor 2 float32 · min 0.0 · xxh3 01234567", True),
        ("2", "Tensor 2 float32 cuda:2 · min 0.0 · xxh3 ff", False),
    ]


def test_tensors_without_a_digest_are_equal_as_far_as_they_were_read() -> None:
    rows = [tensor(0, "", device="cuda:0"), tensor(1, "", device="cuda:1"), tensor(2, "", low=1.0)]
    assert [ranks for ranks, *_ in grouped(*rows)] == ["0,1", "2"]


@given(st.lists(st.floats() | st.integers(-3, 3)))
def test_groups_hold_every_row_once(values: list[float]) -> None:
    rows = [number(rank, value) for rank, value in enumerate(values)]
    groups = compare.groups(rows, write)
    assert sorted(member for group in groups for member in group["members"]) == sorted(row["member"] for row in rows)
    assert sum(group["isMajority"] for group in groups) <= 1
    counts = [group["count"] for group in groups]
    assert counts == sorted(counts, reverse=True)


# --- statistics -----------------------------------------------------------------------------------


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1))
def test_statistics_are_those_of_the_library(values: list[float]) -> None:
    found = compare.statistics_of([number(rank, value) for rank, value in enumerate(values)])
    assert found is not None
    assert (found["min"], found["max"]) == (min(values), max(values))
    assert found["mean"] == pytest.approx(statistics.fmean(values), rel=1e-9, abs=1e-30)
    assert found["std"] == pytest.approx(statistics.pstdev(values), rel=1e-6, abs=1e-6 * max(map(abs, values)) + 1e-300)


@given(st.lists(st.floats(), min_size=1))
def test_statistics_leave_out_and_count_what_is_no_number(values: list[float]) -> None:
    found = compare.statistics_of([number(rank, value) for rank, value in enumerate(values)])
    assert found is not None
    json.dumps(found, allow_nan=False)
    assert found["nan"] == sum(map(math.isnan, values))
    assert found["inf"] == sum(map(math.isinf, values))
    assert all(math.isfinite(values[int(who[1:])]) for who in found["outliers"])


def test_statistics_of_no_number_are_none() -> None:
    assert compare.statistics_of([text(0, "a"), tensor(1, "xxh3:0")]) is None
    found = compare.statistics_of([number(0, math.nan)])
    assert found == {"min": None, "max": None, "mean": None, "std": None, "nan": 1, "inf": 0, "outliers": []}


@pytest.mark.parametrize(
    ("values", "outliers"),
    [
        ([1.0, 1.0, 1.0, 1.0 + 1e-15], ["m3"]),
        ([1.0, 1.1, 0.9, 1.05, 50.0], ["m4"]),
        ([1.0, 2.0], []),
        ([1.0, 1.1, 0.9, 1.05], []),
        ([1.0, 1.0, math.nan, 1.0], []),
        ([0.0] * 8, []),
    ],
)
def test_outliers_are_far_from_the_median(values: list[float], outliers: list[str]) -> None:
    found = compare.statistics_of([number(rank, value) for rank, value in enumerate(values)])
    assert found is not None
    assert found["outliers"] == outliers


# --- sentences ------------------------------------------------------------------------------------


def test_the_message_names_who_is_missing() -> None:
    rows = [number(0, 1.0), number(1, 2.0), text(2, "no answer", "late"), text(3, "running", "running")]
    found = compare.message(rows, compare.groups(rows, write), absent="4-7", warning="it was changed")
    assert found == (
        "2 of 4 ranks answered, 2 different answers; late: world 2; 1 running: only names, attributes and indexes "
        "can be looked up there; no such rank: 4-7; it was changed"
    )
    alike = [number(0, 1.0), number(1, 1.0)]
    assert compare.message(alike, compare.groups(alike, write)) == "2 of 2 ranks answered, all alike"


def test_lines_are_a_group_each() -> None:
    rows = [number(0, 0.25), number(1, math.nan), number(2, 0.25)]
    assert compare.lines(compare.groups(rows, write), absent="9") == "0,2: 0.25\n1: nan\n9: no such rank"


# --- side effects ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression", ["loss", "loss.item()", "a.b[0]['c'] + len(x)", "[p.norm() for p in model.parameters()]", "x == 3"]
)
def test_looking_is_not_warned_of(expression: str) -> None:
    assert side_effects.warning(expression) is None


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("weight.zero_()", "zero_"),
        ("optimizer.step() or loss.backward()", "step, backward"),
        ("(x := 3)", "the assignment to x is not kept"),
        ("(lambda: 0)()", "a function"),
    ],
)
def test_what_may_change_something_is_warned_of(expression: str, what: str) -> None:
    assert what in str(side_effects.warning(expression))
