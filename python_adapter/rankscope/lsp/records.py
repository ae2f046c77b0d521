"""The newest run of a workspace folder: its findings, and what a person wants to see no more of them."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankscope import journal
from rankscope.postmortem.kept_run import FINDINGS
from rankscope.postmortem.repair import repaired_finding
from rankscope.record import HIDDEN, RUNS, ignored_tensors

Finding = dict[str, Any]
Signature = tuple[Any, ...]


@dataclass(frozen=True)
class Run:
    """A run's folder and what its ``run.json`` says. ``findings`` are the last state of each, in order of their ids."""

    folder: Path
    about: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def latest(self) -> float:
        """When its last finding was noted: Unix time."""
        return max((float(finding["at"]) for finding in self.findings), default=0.0)


def signature(workspace: Path) -> Signature:
    """Changes when there is anything to read anew. Costs a listing and two looks."""
    folder = _newest(workspace)
    files = [workspace / HIDDEN, *([] if folder is None else [folder / FINDINGS, folder / "run.json"])]
    return (folder, *(_stamp(file) for file in files))


def newest_run(workspace: Path) -> Run | None:
    """The newest run with its findings; what was cleared, or is about a tensor that is ignored, is left out."""
    folder = _newest(workspace)
    if folder is None:
        return None
    about: Any = _json(folder / "run.json")
    found = journal.read(folder / FINDINGS, "findings")
    last: dict[str, Finding] = {}
    for number, entry in enumerate(found.entries):
        finding = repaired_finding(entry)
        last[str(entry.get("id") or f"#{number}")] = finding
    hidden = _json(workspace / HIDDEN)
    until = _number(hidden.get("until")) if hidden.get("run") == folder.name else -1.0
    ignored = ignored_tensors(workspace)
    kept = [one for one in last.values() if one["at"] > until and (tensor_of(one) or None) not in ignored]
    dropped = [f"{found.dropped} older findings were dropped when the record was full."] if found.dropped else []
    return Run(folder, about, tuple(kept), (*found.problems, *dropped))


def clear(workspace: Path) -> None:
    """Show nothing more of what the newest run has found so far. Raises ``OSError``."""
    run = newest_run(workspace)
    if run is not None:
        _hide(workspace, run=run.folder.name, until=run.latest)


def ignore_tensor(workspace: Path, name: str) -> None:
    """Show no finding about this tensor, of this and later runs. Raises ``OSError``."""
    _hide(workspace, tensors=sorted({*ignored_tensors(workspace), name}))


def tensor_of(finding: Finding) -> str:
    """The tensor that a finding is about; empty where it names none."""
    details = finding.get("details")
    name = details.get("tensor") if isinstance(details, dict) else None
    return name if isinstance(name, str) else ""


def _hide(workspace: Path, **changes: str | float | Sequence[str]) -> None:
    file = workspace / HIDDEN
    new = file.with_suffix(".new")
    new.write_text(json.dumps({**_json(file), **changes}, indent=2) + "\n")
    new.replace(file)


def _newest(workspace: Path) -> Path | None:
    """Folders' names begin with the time."""
    try:
        with os.scandir(workspace / RUNS) as entries:
            name = max((entry.name for entry in entries if entry.is_dir()), default="")
    except OSError:
        return None
    return workspace / RUNS / name if name else None


def _stamp(file: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        stat = file.stat()
        return stat.st_mtime_ns, stat.st_size
    return None


def _json(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else -1.0
