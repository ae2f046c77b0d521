"""Jobs run plainly and under ``rankscope run``, and what came of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

JOBS = Path(__file__).parents[2] / "jobs"
PACKAGE = Path(__file__).parents[3] / "python_adapter"
RUN_SECONDS = 110


def line_of(file: str, mark: str) -> int:
    """The line of a job that carries ``# @bp mark``."""
    lines = (JOBS / file).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.rstrip().endswith(f"# @bp {mark}"))


def at(file: str, mark: str, rest: str = "") -> str:
    """A location for the command line."""
    return f"{file}:{line_of(file, mark)}{rest}"


@dataclass(frozen=True)
class Run:
    """What a run left. ``said`` are RankScope's JSON lines."""

    exit_code: int
    output: str
    errors: str
    said: list[dict[str, Any]]

    @property
    def results(self) -> list[str]:
        """The job's result lines, in any order: ranks print side by side."""
        return sorted(line for line in self.output.splitlines() if line.startswith("RESULT"))

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The JSON lines of one kind."""
        return [line for line in self.said if line["rankscope"] == kind]

    @property
    def stops(self) -> list[str]:
        """The ranks that stopped, sorted."""
        return sorted(line["rank"] for line in self.of("stopped"))


def environment(**added: str) -> dict[str, str]:
    """This environment with the package and this Python's own programs in reach."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    paths = [str(PACKAGE), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(p for p in paths if p), **added}


def cli(*options: str) -> list[str]:
    """The argv of ``rankscope run`` with its options; ``--`` and the command follow."""
    return [sys.executable, "-m", "rankscope.cli", "run", *options]


def plain(*command: str, cwd: Path | str = JOBS, **added: str) -> Run:
    """The job without RankScope."""
    return _run(command, cwd, added)


def run(options: Sequence[str], *command: str, cwd: Path | str = JOBS, **added: str) -> Run:
    """The job under ``rankscope run --json``."""
    return _run([*cli("--json", *options), "--", *command], cwd, added)


def python(*arguments: str) -> tuple[str, ...]:
    """A command of this Python."""
    return (sys.executable, *arguments)


def program(name: str) -> str:
    """A console script of this Python's environment."""
    found = shutil.which(name, path=environment()["PATH"])
    assert found is not None, f"{name} is not installed"
    return found


def point(file: str, mark: str, condition: str) -> dict[str, list[dict[str, Any]]]:
    """One breakpoint, as a session takes it."""
    return {str(JOBS / file): [{"line": line_of(file, mark), "condition": condition}]}


def same_but_stopped(cwd: Path, options: list[str], *command: str, **added: str) -> Run:
    """Run plainly and under RankScope; the results must be the same."""
    under, without = run(options, *command, cwd=cwd, **added), plain(*command, cwd=cwd, **added)
    assert (under.exit_code, under.results) == (without.exit_code, without.results), under.errors
    assert without.results
    return under


def break_at(file: str, mark: str, rest: str = "") -> list[str]:
    """One breakpoint for the command line, by the file's whole path."""
    return ["--break", f"{JOBS / file}:{line_of(file, mark)}{rest}"]


def until(is_true: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Wait for a predicate, within a bound."""
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """Whether a process is there and more than a zombie that nobody has collected yet."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _run(argv: Sequence[str], cwd: Path | str, added: dict[str, str]) -> Run:
    done = subprocess.run(
        argv, cwd=cwd, env=environment(**added), capture_output=True, text=True, timeout=RUN_SECONDS, check=False
    )
    said = [json.loads(line) for line in done.stderr.splitlines() if line.startswith('{"rankscope"')]
    return Run(done.returncode, done.stdout, done.stderr, said)
