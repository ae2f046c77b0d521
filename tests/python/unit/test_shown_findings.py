"""What the Problems panel shows of a run's findings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.lsp.findings import MAX_SHOWN, Shown, shown
from rankscope.lsp.records import Run
from rankscope.postmortem.repair import repaired_finding


def show(tmp_path: Path, *findings: dict[str, Any]) -> list[Shown]:
    train = tmp_path / "train.py"
    train.write_text("x\n" * 50)
    base = {"kind": "crash", "severity": "error", "isFirst": True, "path": str(train), "line": 3, "episode": 1}
    return shown(Run(tmp_path / "run", {}, tuple(repaired_finding({**base, **each}) for each in findings)), tmp_path)


def test_equal_ones_of_ranks_and_steps_are_one(tmp_path: Path) -> None:
    [entry] = show(
        tmp_path,
        *(
            {"kind": "divergence", "text": f"w differs in step {step}", "label": f"world {rank}"}
            for step in range(5)
            for rank in range(8)
        ),
    )
    assert entry.message == "world 0, world 1, world 2, world 3 and 4 more: w differs in step 0 (40 times)"
    assert entry.ranks == "world/0-7"


def test_what_differs_in_line_or_tensor_stays_apart(tmp_path: Path) -> None:
    entries = show(
        tmp_path,
        {"kind": "divergence", "text": "differs", "details": {"tensor": "a"}},
        {"kind": "divergence", "text": "differs", "details": {"tensor": "b"}},
        {"kind": "divergence", "text": "differs", "details": {"tensor": "b"}, "line": 4, "severity": "warning"},
        {"kind": "leak", "text": "differs", "details": {"tensor": "b"}, "severity": "hint"},
    )
    assert [(entry.tensor, entry.line, entry.kind) for entry in entries] == [
        ("a", 3, "divergence"),
        ("b", 3, "divergence"),
        ("b", 4, "divergence"),
        ("b", 3, "leak"),
    ]


def test_what_followed_from_a_failure_stands_below_it(tmp_path: Path) -> None:
    follows = {"isFirst": False, "severity": "information", "text": "RuntimeError: closed"}
    [entry, other] = show(
        tmp_path,
        {**follows, "label": "world 7", "line": 9},
        {"label": "world 0", "text": "ValueError: bad"},
        *({**follows, "label": f"world {rank}", "line": rank} for rank in range(1, 60)),
        {"episode": 2, "isFirst": False, "severity": "information", "text": "alone", "label": "world 1"},
    )
    assert (entry.message, entry.severity) == ("world 0 failed: ValueError: bad", "error")
    assert [each.line for each in entry.related[:3]] == [9, 1, 2]
    assert entry.related[0].text == "world 7, world 9: RuntimeError: closed"
    assert entry.related[-1].text == "and 39 more places"
    assert (other.message, other.severity) == ("world 1 failed: alone", "information")


def test_a_hang_names_both_sides_and_its_end(tmp_path: Path) -> None:
    places = [
        {"label": "world 3", "path": str(tmp_path / "train.py"), "line": 7, "text": ""},
        {"label": "world 0", "path": str(tmp_path / "train.py"), "line": 8, "text": "in all_reduce"},
        {"label": "world 1", "path": str(tmp_path / "train.py"), "line": 8, "text": "in all_reduce"},
    ]
    hang = {"kind": "hang", "label": "world 3", "text": "world 0-1 wait", "ranks": "3", "details": {"places": places}}
    [entry] = show(tmp_path, hang)
    assert (entry.message, entry.severity, entry.ranks) == ("world 0-1 wait", "error", "3")
    assert [each.text for each in entry.related] == ["world 3", "world 0, world 1: in all_reduce"]
    [entry] = show(tmp_path, {**hang, "resolved": 12.0, "how": "resolved after 12 s"})
    assert (entry.message, entry.severity) == ("world 0-1 wait (resolved after 12 s)", "information")


@pytest.mark.parametrize(
    ("label", "ranks"),
    [
        ("world 3", "world/3"),
        ("my group 2 · node-1", "my group/2"),
        ("rollout", ""),
        ("", ""),
        ("world 1 child 2", ""),
    ],
)
def test_the_set_of_a_label(tmp_path: Path, label: str, ranks: str) -> None:
    [entry] = show(tmp_path, {"label": label, "text": "x"})
    assert entry.ranks == ranks


def test_too_many_are_counted(tmp_path: Path) -> None:
    entries = show(tmp_path, *({"kind": "leak", "text": "x", "line": line} for line in range(1, MAX_SHOWN + 8)))
    assert len(entries) == MAX_SHOWN + 1
    assert (entries[-1].message, entries[-1].path) == ("7 more findings are not shown.", str(tmp_path / "run/run.json"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    "kind",
    "severity",
    "path",
    "line",
    "text",
    "label",
    "ranks",
    "details",
    "places",
    "resolved",
    "how",
    "isFirst",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from([*FIELDS, "episode", "at", "id"]), JSON, max_size=6), max_size=5), JSON)
def test_no_record_breaks_it(findings: list[dict[str, Any]], about: Any) -> None:
    nested = [{"details": {"places": [finding], "tensor": finding.get("kind")}} for finding in findings]
    run = Run(
        Path("/nowhere/run"), {"pathMappings": about, "cwd": about}, tuple(map(repaired_finding, findings + nested))
    )
    for entry in shown(run, Path("/nowhere")):
        assert entry.line >= 1
        assert entry.severity in ("error", "warning", "information", "hint")
