"""Breakpoints and logpoints as written in a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankscope.errors import LocationError, UserError
from rankscope.launch.locations import parse_breakpoint, parse_logpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("x = 1\ny = 2\nz = 3\n")
    (tmp_path / "odd:7 name.py").write_text("x = 1\n")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "line", "made"),
    [
        ("train.py:2", 2, {"line": 2}),
        ("train.py:2@1", 2, {"line": 2, "condition": "True  # @1"}),
        ("train.py:3 if x > 1", 3, {"line": 3, "condition": "x > 1"}),
        ("train.py:3@actor/0-3:2 if x > 1", 3, {"line": 3, "condition": "x > 1  # @actor/0-3:2"}),
        ("train.py:1@local:0,driver if d[1:2]", 1, {"line": 1, "condition": "d[1:2]  # @local:0,driver"}),
    ],
)
def test_a_breakpoint_is_read(folder: Path, text: str, line: int, made: dict[str, object]) -> None:
    location = parse_breakpoint(text, folder)
    assert location.file == str(folder / "train.py")
    assert location.line == line
    assert location.source_breakpoint() == made


def test_a_logpoint_is_read(folder: Path) -> None:
    location = parse_logpoint("train.py:2@local:0: y is {y}, so: {x + y}", folder)
    assert location.source_breakpoint() == {
        "line": 2,
        "condition": "True  # @local:0",
        "logMessage": "y is {y}, so: {x + y}",
    }


def test_an_absolute_path_is_kept(folder: Path) -> None:
    assert parse_breakpoint(f"{folder}/train.py:1", Path("/")).file == f"{folder}/train.py"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("train.py", "':LINE' is missing at column 9"),
        ("train.py:", "':LINE' is missing at column 10"),
        ("train.py:x2", "'x2' is not a line number at column 10"),
        ("train.py:0", "lines start at 1, not 0, at column 10"),
        ("train.py:4", "the file has 3 lines"),
        ("train.py:2 when x", "'when x' is not understood at column 11"),
        ("train.py:2 if ", "an expression is missing after 'if' at column 15"),
    ],
)
def test_a_bad_location_points_at_the_fault(folder: Path, text: str, why: str) -> None:
    with pytest.raises(LocationError) as caught:
        parse_breakpoint(text, folder)
    assert caught.value.code == "bad-location"
    assert caught.value.message == f"Location '{text}': {why}."


@pytest.mark.parametrize(
    ("text", "code", "part"),
    [
        ("train.py:2@", "bad-rank-set", "it is empty"),
        ("train.py:2@0,nobody", "bad-rank-set", "'nobody'"),
        ("train.py:2 if x >", "bad-condition", "Condition 'x >'"),
        ("tarin.py:2", "no-such-file", "'tarin.py' does not exist"),
    ],
)
def test_what_else_is_refused(folder: Path, text: str, code: str, part: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_breakpoint(text, folder)
    assert caught.value.code == code
    assert part in caught.value.message


def test_a_missing_file_names_one_alike(folder: Path) -> None:
    with pytest.raises(UserError) as caught:
        parse_breakpoint("tarin.py:2", folder)
    assert caught.value.hint == "Did you mean train.py?"


@pytest.mark.parametrize("text", ["train.py:2", "train.py:2:x", "train.py:2: ", "train.py:2@0 loss"])
def test_a_logpoint_needs_a_text(folder: Path, text: str) -> None:
    with pytest.raises(LocationError):
        parse_logpoint(text, folder)


@pytest.mark.parametrize("text", ["train.py:2: {x", "train.py:2: {x y}", "train.py:2: {}"])
def test_a_logpoint_has_good_expressions(folder: Path, text: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_logpoint(text, folder)
    assert caught.value.code == "bad-condition"
