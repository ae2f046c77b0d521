"""The runs of a folder: what they were, how they ended, what they keep; and which may go."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankscope.errors import UserError
from rankscope.postmortem.kept_run import DUMPS, FINDINGS
from rankscope.record import RUNS


@dataclass(frozen=True)
class Run:
    """One run's folder. ``state`` is ``running``, ``ended`` or ``broken off``; ``exit_code`` is known once it ended."""

    folder: Path
    name: str
    command: str
    started: float
    state: str
    exit_code: int | None
    bytes: int
    has_failure: bool

    def as_json(self) -> dict[str, Any]:
        """Plain data, for programs."""
        return {
            "folder": str(self.folder),
            "name": self.name,
            "command": self.command,
            "started": self.started,
            "state": self.state,
            "exitCode": self.exit_code,
            "bytes": self.bytes,
            "hasFailure": self.has_failure,
        }


def runs(base: Path) -> list[Run]:
    """Every run below ``base``, the newest first."""
    folders = [folder for folder in (base / RUNS).glob("*") if (folder / "run.json").is_file()]
    return [_run(folder) for folder in sorted(folders, reverse=True)]


def find(place: str, base: Path, *, with_dumps: bool = False) -> Path:
    """The folder of a run: a path, a name in ``.rankscope/runs``, or empty for the newest that keeps a failure.

    ``with_dumps``: a newest one that keeps dumps, and not only what was found.
    Raises :class:`UserError` ``no-such-run``.
    """
    if place:
        for folder in (base / place, base / RUNS / place):
            if (folder / "run.json").is_file() or (folder / DUMPS).is_dir():
                return folder
        raise UserError("no-such-run", f"There is no run '{place}'.", "'rankscope runs' lists them.")
    for run in runs(base):
        if run.has_failure and (not with_dumps or any((run.folder / DUMPS).glob("*.msgpack"))):
            return run.folder
    raise UserError("no-such-run", f"No run in {base / RUNS} keeps a failure.", "'rankscope runs' lists them.")


def prune(base: Path, *, keep: int) -> list[Run]:
    """Delete all runs but the newest ``keep`` and those that go on; returns what was deleted."""
    ended = [run for run in runs(base) if run.state != "running"]
    gone = ended[keep:]
    for run in gone:
        shutil.rmtree(run.folder, ignore_errors=True)
    return gone


def _run(folder: Path) -> Run:
    try:
        read = json.loads((folder / "run.json").read_text())
    except (OSError, ValueError):
        read = {}
    about: dict[str, Any] = read if isinstance(read, dict) else {}
    command = about.get("command")
    words = command if isinstance(command, list) else [command or ""]
    code = about.get("exitCode")
    return Run(
        folder=folder,
        name=str(about.get("name") or folder.name),
        command=" ".join(map(str, words)),
        started=_begin(folder, about),
        state="ended" if code is not None else "running" if _lives(about.get("hub")) else "broken off",
        exit_code=code if isinstance(code, int) else None,
        bytes=sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()),
        has_failure=(folder / FINDINGS).exists() or any((folder / DUMPS).glob("*.msgpack")),
    )


def _begin(folder: Path, about: dict[str, Any]) -> float:
    try:
        return time.mktime(time.strptime(folder.name[:15], "%Y%m%d-%H%M%S"))
    except ValueError:
        return (folder / "run.json").stat().st_mtime if about else 0.0


def _lives(hub: Any) -> bool:
    try:
        os.kill(int(hub["pid"]), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return True
