"""The record's files: appended to, torn, damaged, foreign, newer, full."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from rankscope import journal

pytestmark = pytest.mark.core


def written(path: Path, count: int = 5) -> Path:
    log = journal.Journal(path, "findings")
    assert all(log.append({"n": number, "text": "x" * 20}) for number in range(count))
    return path


def numbers(contents: journal.Contents) -> list[Any]:
    return [entry.get("n") for entry in contents.entries]


def test_what_is_appended_is_read(tmp_path: Path) -> None:
    found = journal.read(written(tmp_path / "a" / "findings.msgpack"), "findings")
    assert numbers(found) == [0, 1, 2, 3, 4]
    assert found.problems == []


def test_a_second_writer_goes_on(tmp_path: Path) -> None:
    written(tmp_path / "f", 2)
    assert numbers(journal.read(written(tmp_path / "f", 1), "findings")) == [0, 1, 0]


def test_a_torn_last_entry_is_skipped_and_told(tmp_path: Path) -> None:
    path = written(tmp_path / "f")
    path.write_bytes(path.read_bytes()[:-7])
    found = journal.read(path, "findings")
    assert numbers(found) == [0, 1, 2, 3]
    assert "damaged" in found.problems[0]
    assert numbers(journal.read(written(path, 1), "findings")) == [0, 1, 2, 3, 0]


def test_damage_in_the_middle_costs_only_what_it_hit(tmp_path: Path) -> None:
    path = written(tmp_path / "f")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))
    found = journal.read(path, "findings")
    assert len(found.entries) == 4
    assert found.problems


def test_foreign_newer_and_absent_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "png").write_bytes(b"\x89PNG" + bytes(range(256)) * 10)
    assert "does not begin" in " ".join(journal.read(tmp_path / "png", "findings").problems)
    (tmp_path / "newer").write_bytes(journal.pack({"rankscope": 99, "kind": "findings"}) + journal.pack({"n": 1}))
    found = journal.read(tmp_path / "newer", "findings")
    assert numbers(found) == [1]
    assert "newer" in found.problems[0]
    other = journal.read(written(tmp_path / "other"), "spans")
    assert other.entries == []
    assert "not 'spans'" in other.problems[0]
    assert journal.read(tmp_path / "absent", "findings").problems == []
    assert "cannot be read" in journal.read(tmp_path, "findings").problems[0]


def test_a_full_file_drops_its_oldest_and_counts_them(tmp_path: Path) -> None:
    log = journal.Journal(tmp_path / "f", "findings", max_bytes=2_000)
    for number in range(200):
        log.append({"n": number, "text": "x" * 40})
    found = journal.read(tmp_path / "f", "findings")
    assert numbers(found)[-1] == 199
    assert found.dropped + len(found.entries) == 200
    assert (tmp_path / "f").stat().st_size <= 2_000


def test_a_write_that_fails_is_counted_and_the_next_is_tried(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("a file where the folder should be")
    log = journal.Journal(tmp_path / "there" / "f", "findings")
    assert not log.append({"n": 1})
    assert (log.lost, bool(log.failure)) == (1, True)
    (tmp_path / "there").unlink()
    assert log.append({"n": 2})
    assert numbers(journal.read(tmp_path / "there" / "f", "findings")) == [2]


def test_whatever_the_bytes_are_reading_ends_and_keeps_what_is_sound(tmp_path: Path) -> None:
    whole = written(tmp_path / "f", 20).read_bytes()
    for seed in range(300):
        chance = random.Random(seed)
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(data))
            kind = chance.randrange(3)
            if kind == 0:
                data[at] = chance.randrange(256)
            elif kind == 1:
                del data[at : at + chance.randrange(1, 40)]
            else:
                data[at:at] = chance.randbytes(chance.randrange(1, 40))
        (tmp_path / "f").write_bytes(bytes(data))
        found = journal.read(tmp_path / "f", "findings")
        assert len(found.entries) >= 8 or found.problems
        assert all(entry["text"] == "x" * 20 for entry in found.entries if "text" in entry)
