"""Findings: told once, kept in the record, and changed when more is known."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rankscope.hub.findings import Findings
from rankscope.hub.fleet import Fleet
from rankscope.postmortem import kept_run, listing, report, text

pytestmark = pytest.mark.core


def findings(folder: Path) -> tuple[Findings, list[dict[str, Any]], list[str]]:
    heard: list[dict[str, Any]] = []
    notices: list[str] = []
    fleet = SimpleNamespace(notice=lambda _level, said, _member: notices.append(said))
    found = Findings(cast("Fleet", fleet))
    found.begin(folder)
    found.listeners.append(heard.append)
    return found, heard, notices


def hang(said: str = "world 0 waits", page: str = "world 0 waits\n  train.py:3") -> dict[str, Any]:
    return {"kind": "hang", "severity": "error", "at": 1.0, "text": said, "details": {"text": page}}


def test_a_finding_has_every_field_and_no_escapes(tmp_path: Path) -> None:
    found, heard, _ = findings(tmp_path)
    assert found.add(hang("\x1b[31mred\x1b[0m")) == "hang-1"
    [told] = heard
    assert (told["text"], told["path"], told["line"], told["isFirst"], told["record"]) == (
        "red",
        "",
        0,
        False,
        str(tmp_path),
    )


def test_the_same_again_is_no_news_and_a_change_takes_its_place(tmp_path: Path) -> None:
    found, heard, _ = findings(tmp_path)
    number = found.add(hang())
    found.change(number)
    found.change("hang-99", how="never told")
    assert len(heard) == 1
    found.change(number, how="resolved after 16 s", resolved=16.0)
    assert [one["how"] for one in heard] == ["", "resolved after 16 s"]
    found.add(hang("another"))
    kept = kept_run.open_run(tmp_path).findings
    assert [(one["id"], one["how"]) for one in kept] == [("hang-1", "resolved after 16 s"), ("hang-2", "")]


def test_what_is_not_to_be_kept_is_told_all_the_same(tmp_path: Path) -> None:
    found, heard, _ = findings(tmp_path)
    found.add(hang(), is_kept=False)
    assert len(heard) == 1 and kept_run.open_run(tmp_path).findings == []


def test_a_record_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found, _, notices = findings(tmp_path / "file")
    found.add(hang())
    found.add(hang())
    assert len(notices) == 1


def test_a_kept_hang_is_listed_and_reported(tmp_path: Path) -> None:
    run = tmp_path / ".rankscope" / "runs" / "20260101-000000-1-run"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    found, _, _ = findings(run)
    found.change(found.add(hang()), how="resolved after 16 s")
    assert listing.find("", tmp_path) == run
    with pytest.raises(Exception, match="No run"):
        listing.find("", tmp_path, with_dumps=True)
    assert list(text.post_mortem(kept_run.open_run(run))) == [
        "hang: world 0 waits (resolved after 16 s)",
        "    train.py:3",
    ]
    pytest.importorskip("jinja2")
    report.write(run, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "What hung" in page and "train.py:3" in page and "resolved after 16 s" in page
