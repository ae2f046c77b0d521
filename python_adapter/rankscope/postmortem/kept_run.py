"""A run's dumps and findings in its record, opened: one file a process, read when it is looked into."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankscope import journal
from rankscope.postmortem.repair import repaired, repaired_about, repaired_finding

DUMPS = "dumps"
FINDINGS = "findings.msgpack"
DUMP_KIND = "dump"
DROPPED = "dropped.msgpack"
DROPPED_KIND = "dropped"
_HEAD_BYTES = 64 << 10
_MAX_DUMP_BYTES = 64 << 20

About = dict[str, Any]


@dataclass
class Kept:
    """One process's dump: who it was, and how to read the rest."""

    about: About
    load: Callable[[], dict[str, Any]]


@dataclass
class KeptRun:
    """What a record's folder holds. ``problems`` are sentences for a person about what is not sound."""

    kept: list[Kept] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def open_run(folder: Path) -> KeptRun:
    """Everything sound in a record's folder, the failed process first. Reads no dump but its first lines."""
    run = KeptRun()
    found = journal.read(folder / FINDINGS, "findings")
    run.findings, run.problems = _latest(repaired_finding(entry) for entry in found.entries), found.problems
    if found.dropped:
        run.problems.append(f"{found.dropped} older findings were dropped when {FINDINGS} was full.")
    losses = journal.read(folder / DROPPED, DROPPED_KIND)
    if dropped := losses.dropped + len(losses.entries):
        run.problems.append(f"{dropped} dumps, the oldest detail first, were dropped when the record was full.")
    for path in sorted((folder / DUMPS).glob("*.msgpack")):
        about = _about(path, run.problems)
        if about is not None:
            run.kept.append(Kept(about, lambda path=path: _load(path)))  # type: ignore[misc]
    if run.kept:
        last = max(_count(kept.about, "episode") for kept in run.kept)
        run.kept = [kept for kept in run.kept if _count(kept.about, "episode") == last]
    first = next((one.get("member") for one in reversed(run.findings) if one.get("isFirst")), None)
    run.kept.sort(key=lambda kept: _place(kept.about, first))
    return run


def _latest(findings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each finding as it was told last: a later entry with the same id takes the place of the earlier one."""
    by_id = {str(finding.get("id") or f"entry {at}"): finding for at, finding in enumerate(findings)}
    return list(by_id.values())


def _place(about: About, first: Any) -> tuple[bool, bool, float, int]:
    """The first failure first, then those that followed as they came, then the others as they joined."""
    has_failed, at = bool(about.get("failed")), about.get("at")
    when = float(at) if has_failed and isinstance(at, (int, float)) else 0.0
    return about.get("id") != first or not has_failed, not has_failed, when, _count(about, "number")


def _count(about: About, name: str) -> int:
    value = about.get(name)
    return value if isinstance(value, int) else 0


def _about(path: Path, problems: list[str]) -> About | None:
    try:
        with path.open("rb") as file:
            start = file.read(_HEAD_BYTES)
        size = path.stat().st_size
    except OSError as e:
        problems.append(f"{path.name} cannot be read: {e.strerror or e}.")
        return None
    found = journal.read_bytes(start, path.name, DUMP_KIND, is_whole=size <= _HEAD_BYTES)
    problems += found.problems
    about = next((entry["about"] for entry in found.entries if isinstance(entry.get("about"), dict)), None)
    if about is None:
        problems.append(f"{path.name} does not say whose it is, and is left out.")
        return None
    return repaired_about(about)


def _load(path: Path) -> dict[str, Any]:
    """A dump with every part that a reader relies on, whatever the file lacks."""
    empty: dict[str, Any] = {"threads": [], "frames": [], "nodes": [], "sources": {}, "exception": None, "cut": {}}
    if path.stat().st_size > _MAX_DUMP_BYTES:
        return empty
    found = journal.read(path, DUMP_KIND)
    sound: list[dict[str, Any]] = [entry["dump"] for entry in found.entries if isinstance(entry.get("dump"), dict)]
    return repaired({**empty, **(sound[0] if sound else {})})
