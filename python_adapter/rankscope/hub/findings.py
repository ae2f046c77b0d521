"""The job's findings: numbered, told once to whoever listens, and kept in the run's record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankscope.escapes import without_escapes
from rankscope.hub.divergences import Divergences
from rankscope.journal import Journal
from rankscope.postmortem import kept_run

if TYPE_CHECKING:
    from rankscope.hub.fleet import Fleet

Finding = dict[str, Any]

_TEXTS = ("path", "name", "type", "message", "text", "how")
_FACTS: Finding = {"member": "", "label": "", "episode": 0, "isFirst": False, "isEcho": False, "line": 0}


class Findings:
    """The one writer of a record's findings. ``listeners`` hear each, with ``record``, the folder that keeps it."""

    def __init__(self, fleet: Fleet) -> None:
        self.listeners: list[Callable[[Finding], None]] = []
        self._fleet = fleet
        self._folder: Path | None = None
        self._journal: Journal | None = None
        self._count = 0
        self._told: dict[str, Finding] = {}
        self.divergences = Divergences(fleet)

    def begin(self, folder: Path) -> None:
        """What is found from now on goes into this record's folder."""
        self._folder = folder
        self._journal = Journal(folder / kept_run.FINDINGS, "findings")

    def add(self, finding: Finding, *, is_kept: bool = True) -> str:
        """Tell and keep a finding; returns its id. One with the ``id`` of an earlier one takes its place.

        What a finding does not say of :data:`_FACTS` and its texts is empty. The same one again is no news.
        """
        if "id" not in finding:
            self._count += 1
            finding = {**finding, "id": f"{finding['kind']}-{self._count}"}
        texts = {name: without_escapes(str(finding.get(name) or "")) for name in _TEXTS}
        finding = {**_FACTS, **finding, **texts}
        number = str(finding["id"])
        if self._told.get(number) == finding:
            return number
        self._told[number] = finding
        journal = self._journal if is_kept else None
        if journal is not None and not journal.append(finding) and journal.lost == 1:
            self._fleet.notice("error", f"findings could not be written: {journal.failure}", None)
        for listener in list(self.listeners):
            listener({**finding, "record": str(self._folder or "")})
        return number

    def change(self, number: str, **changes: Any) -> None:
        """More is known of a finding; nothing for one that was never told."""
        if number in self._told:
            self.add({**self._told[number], **changes})
