"""Findings of a run as what the Problems panel shows: one entry for what many ranks or steps have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankscope.errors import UserError
from rankscope.hub.paths import Paths
from rankscope.hub.settings import LaunchSettings, PathMapping
from rankscope.lsp.records import Finding, Run, tensor_of
from rankscope.ranks import RankFacts, RankSet, write_set

MAX_SHOWN = 500
_MAX_RELATED = 20
_MAX_TEXT = 300
_NUMBERS = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")
_LABEL = re.compile(r"(?P<group>[^·]*\S) (?P<rank>\d+)( ·.*)?")
_NO_RANK = re.compile(r"^driver | child \d+$")
_SEVERITIES = ("error", "warning", "information", "hint")
_INSTALLED = re.compile(r"/(site|dist)-packages/")


@dataclass(frozen=True)
class Related:
    """A rank's own line. ``line`` is from 1."""

    path: str
    line: int
    text: str


@dataclass(frozen=True)
class Shown:
    """One entry. ``path`` is a file of this machine, ``line`` from 1; ``ranks`` is the set that deviates, if known."""

    path: str
    line: int
    kind: str
    severity: str
    message: str
    record: str
    ranks: str = ""
    tensor: str = ""
    expression: str = ""
    related: tuple[Related, ...] = ()


@dataclass
class _Group:
    """Findings that are the same but for the rank, the step or a number. The first stands for all."""

    findings: list[Finding] = field(default_factory=list)
    followers: list[Finding] = field(default_factory=list)

    @property
    def first(self) -> Finding:
        return self.findings[0]

    @property
    def labels(self) -> list[str]:
        return list(dict.fromkeys(str(one["label"]) for one in self.findings if one["label"]))


def shown(run: Run, workspace: Path) -> list[Shown]:
    """What to show of a run, worst first; no more than ``MAX_SHOWN``, and an entry that says how many are left out."""
    locate = Locator(run, workspace)
    record = str(run.folder)
    entries = [_entry(group, locate, record) for group in _groups(run.findings)]
    entries.sort(key=lambda entry: _SEVERITIES.index(entry.severity))
    own = str(run.folder / "run.json")
    notes = list(run.problems)
    if len(entries) > MAX_SHOWN:
        notes.append(f"{len(entries) - MAX_SHOWN} more findings are not shown.")
    return entries[:MAX_SHOWN] + [Shown(own, 1, "record", "information", note, record) for note in notes]


class Locator:
    """Finds a member's file here: as breakpoints are mapped, else by the end of its path below the workspace."""

    def __init__(self, run: Run, workspace: Path) -> None:
        mappings = run.about.get("pathMappings")
        pairs = [pair for pair in mappings if _is_pair(pair)] if isinstance(mappings, list) else []
        cwd = run.about.get("cwd")
        settings = LaunchSettings(
            cwd=cwd if isinstance(cwd, str) else "",
            path_mappings=[PathMapping(local, remote) for local, remote in pairs],
            workspace_folders=[str(workspace)],
        )
        self._paths = Paths(settings)
        self._workspace = workspace
        self._own = run.folder / "run.json"

    def __call__(self, path: str, line: int) -> tuple[str, int, str]:
        """File and line here, and what to add to the text: what is not here stands at the record's own file."""
        if not path:
            return str(self._own), 1, ""
        place = self._paths.in_client(path)
        if not Path(place).is_file():
            place = self._by_end(path)
        return (place, max(1, line), "") if place else (str(self._own), 1, f" (at {path}:{line}, which is not here)")

    def _by_end(self, path: str) -> str:
        parts = [] if _INSTALLED.search(path) else [part for part in path.split("/") if part not in ("", "..")]
        ends = (self._workspace.joinpath(*parts[at:]) for at in range(len(parts)))
        return next((str(end) for end in ends if end.is_file()), "")


def _groups(findings: Iterable[Finding]) -> list[_Group]:
    """Equal ones together; what followed from a failure goes with the first failure of its episode."""
    groups: dict[tuple[Any, ...], _Group] = {}
    firsts: dict[int, _Group] = {}
    followers: list[Finding] = []
    for finding in findings:
        if finding["kind"] == "crash" and not finding["isFirst"]:
            followers.append(finding)
            continue
        group = groups.setdefault(_likeness(finding), _Group())
        group.findings.append(finding)
        if finding["kind"] == "crash":
            firsts[finding["episode"]] = group
    for finding in followers:
        cause = firsts.get(finding["episode"])
        if cause is None:
            groups.setdefault(_likeness(finding), _Group()).findings.append(finding)
        elif _likeness(finding) == _likeness(cause.first):
            cause.findings.append(finding)
        else:
            cause.followers.append(finding)
    return list(groups.values())


def _likeness(finding: Finding) -> tuple[Any, ...]:
    """Equal for findings that differ in rank, step or value only."""
    text = _NUMBERS.sub("#", finding["text"])
    return finding["kind"], finding["path"], finding["line"], finding["type"], text, tensor_of(finding)


def _entry(group: _Group, locate: Locator, record: str) -> Shown:
    first = group.first
    labels, count = group.labels, len(group.findings)
    path, line, note = locate(first["path"], first["line"])
    text = first["text"] or first["message"] or first["kind"]
    if first["kind"] == "crash":
        text = f"{_some(labels) or 'A process'} failed: {text}"
    elif len(labels) > 1:
        text = f"{_some(labels)}: {text}"
    if count > 1:
        text += f" ({count} times)"
    is_over = isinstance(first.get("resolved"), (int, float))
    if is_over and first["how"]:
        text += f" ({first['how']})"
    severity = first["severity"] if first["severity"] in _SEVERITIES else "warning"
    details = first["details"] if isinstance(first.get("details"), dict) else {}
    expression = details.get("expression")
    return Shown(
        path,
        line,
        first["kind"] or "finding",
        "information" if is_over else severity,
        text + note,
        record,
        _ranks(first, labels),
        tensor_of(first),
        expression if isinstance(expression, str) else "",
        _related(group, details, locate),
    )


def _related(group: _Group, details: dict[str, Any], locate: Locator) -> tuple[Related, ...]:
    """Each rank's own line: those that the finding names, and failures that followed; those alike together."""
    places = details.get("places", group.first.get("places"))
    named = [place for place in places if isinstance(place, dict)] if isinstance(places, list) else []
    alike: dict[tuple[str, int, str], list[str]] = {}
    for one in (*named, *group.followers):
        path, line, text, label = (one.get(name) for name in ("path", "line", "text", "label"))
        if isinstance(path, str) and path and isinstance(line, int):
            label = label or (f"rank {one['rank']}" if "rank" in one else "")
            alike.setdefault((path, line, text if isinstance(text, str) else ""), []).append(str(label))
    found = []
    for (path, line, text), labels in list(alike.items())[:_MAX_RELATED]:
        here, at, note = locate(path, line)
        names = _some(list(dict.fromkeys(filter(None, labels))))
        first_line = text.split("\n", 1)[0][:_MAX_TEXT]
        found.append(Related(here, at, ": ".join(filter(None, (names, first_line))) + note))
    if len(alike) > _MAX_RELATED:
        here, at, _ = locate(group.first["path"], group.first["line"])
        found.append(Related(here, at, f"and {len(alike) - _MAX_RELATED} more places"))
    return tuple(found)


def _ranks(finding: Finding, labels: Sequence[str]) -> str:
    """The set of the ranks that deviate: as the finding says, else made of labels; empty where it cannot be told."""
    details = finding.get("details")
    told = (finding.get("ranks"), details.get("deviating") if isinstance(details, dict) else None)
    known = list(filter(None, map(_facts_of, labels)))
    groups = [*known, RankFacts(rank=0)]  # another one, so that the name of the group is written
    text = next((each for each in (*told, write_set(known, groups)) if isinstance(each, str) and each), "")
    try:
        RankSet.parse(text)
    except UserError:
        return ""
    return text


def _facts_of(label: str) -> RankFacts | None:
    match = _LABEL.fullmatch(label)
    return None if match is None or _NO_RANK.search(label) else RankFacts(group=match["group"], rank=int(match["rank"]))


def _some(labels: Sequence[str], most: int = 4) -> str:
    more = f" and {len(labels) - most} more" if len(labels) > most else ""
    return ", ".join(labels[:most]) + more


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(each, str) for each in value)
