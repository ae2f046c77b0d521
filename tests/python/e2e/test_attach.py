"""``rankscope attach``: a job that began dormant is looked into later, and left as it was."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from support.runs import cli, environment, until

LOOP = """\
import os, sys, threading
turns = 0
while not os.path.exists(sys.argv[1]):
    threading.Event().wait(0.02)
    turns += 1  # @bp turn
print("RESULT done", flush=True)
sys.exit(3)
"""
LINE = 1 + next(at for at, text in enumerate(LOOP.splitlines()) if text.endswith("# @bp turn"))


@contextmanager
def running(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A rank that turns round and round under ``rankscope run``, until its file is there."""
    (folder / "loop.py").write_text(LOOP)
    end = folder / "end"
    argv = [*cli(), "--", sys.executable, "loop.py", str(end)]
    with subprocess.Popen(
        argv, cwd=folder, env=environment(RANK="0", WORLD_SIZE="1"), stdout=subprocess.PIPE, text=True
    ) as job:
        try:
            until(lambda: any(folder.glob(".rankscope/runs/*/run.json")), "the run's record")
            yield job, end
        finally:
            end.touch()
            job.wait(30)


def attach(folder: Path, *options: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "rankscope.cli", "attach", "--json", *options]
    return subprocess.Popen(argv, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True)


def next_stop(stream: IO[str]) -> dict[str, object]:
    """The next stop that the attached terminal prints."""
    for line in stream:
        said: dict[str, object] = json.loads(line)
        if said["rankscope"] == "stopped":
            return said
    raise AssertionError("no stop")


def test_a_dormant_job_stops_after_attach_and_runs_on_after_leaving(tmp_path: Path) -> None:
    with running(tmp_path) as (job, end):
        for _ in range(2):
            with attach(tmp_path, "--break", f"loop.py:{LINE}@0", "--print", "turns") as attached:
                assert attached.stderr is not None
                stop = next_stop(attached.stderr)
                assert stop["rank"] == "world 0"
                attached.send_signal(signal.SIGINT)
                attached.stderr.read()
                assert attached.wait(30) == 0
            assert job.poll() is None
        end.touch()
        assert job.stdout is not None
        assert job.stdout.read() == "RESULT done\n"
        assert job.wait(30) == 3


def test_the_jobs_end_ends_the_attached_terminal_with_its_code(tmp_path: Path) -> None:
    with running(tmp_path) as (_, end), attach(tmp_path, "--break", f"loop.py:{LINE}") as attached:
        assert attached.stderr is not None
        next_stop(attached.stderr)
        end.touch()
        attached.stderr.read()
        assert attached.wait(30) == 3


def test_no_run_to_attach_to_is_said(tmp_path: Path) -> None:
    with attach(tmp_path) as attached:
        assert attached.stderr is not None
        assert json.loads(attached.stderr.readline())["code"] == "no-such-run"
        assert attached.wait(30) == 2
