"""A disk that is full, and a record that is taken away: the job goes on as it would have, and the loss is told."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.kept import job
from support.runs import Run, python, run

FAILS = "fails.py"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 256 KB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def losses(done: Run) -> list[str]:
    return [line["text"] for line in done.of("notice") if "could not be" in line["text"]]


def test_a_full_disk_costs_the_record_and_nothing_else(small_disk: Path) -> None:
    program = (
        "import os\n"
        "os.system('dd if=/dev/zero of=filler bs=1k count=1000 status=none 2> /dev/null')\n"
        "print('RESULT filled', flush=True)\n"
        "raise ValueError('bad')\n"
    )
    source = small_disk.parent / "fills.py"
    source.write_text(program)
    done = run([], *python(str(source)), cwd=small_disk)
    assert (done.exit_code, done.results) == (1, ["RESULT filled"])
    assert "ValueError: bad" in done.errors
    assert any("its last moment could not be kept" in text for text in losses(done)), done.said
    assert any("findings could not be written" in text for text in losses(done)), done.said
    assert any("first failure: driver fills.py: ValueError: bad" in line["text"] for line in done.of("notice"))


def test_a_record_that_is_deleted_meanwhile_is_begun_anew(tmp_path: Path) -> None:
    source = tmp_path / "deletes.py"
    source.write_text("import shutil\nshutil.rmtree('.rankscope')\nraise ValueError('bad')\n")
    done = run([], *python(str(source)), cwd=tmp_path)
    assert done.exit_code == 1 and losses(done) == []
    assert list(tmp_path.glob(".rankscope/runs/*/dumps/*.msgpack"))


def test_a_folder_that_cannot_hold_a_record_is_told(tmp_path: Path) -> None:
    (tmp_path / ".rankscope").write_text("a file")
    done = run([], *python(job(FAILS), "raise"), cwd=tmp_path)
    assert done.exit_code == 1
    assert [line for line in done.of("notice") if "no record is kept of this run" in line["text"]]
    assert [line for line in done.of("notice") if "first failure" in line["text"]]
