"""Tensors that are not the same on ranks that ought to have them alike: what the checks tell, as findings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankscope import journal
from rankscope.postmortem.kept_run import FINDINGS
from rankscope.ranks import write_set
from rankscope.record import RUNS, ignored_tensors

if TYPE_CHECKING:
    from rankscope.hub.fleet import Fleet
    from rankscope.hub.member import Member
    from rankscope.hub.settings import SyncSettings

KIND = "divergence"


class Divergences:
    """One finding for a tensor at a line, however many steps it is seen at."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._told: dict[tuple[str, str, int, str], tuple[str, int]] = {}

    def handle(self, teller: Member, about: Mapping[str, Any]) -> None:
        """A group's first rank tells of a tensor. Raises ``TypeError`` or ``ValueError`` for what cannot be read."""
        details = dict(about.get("details") or {})
        path, line, tensor = str(about.get("path", "")), int(about.get("line") or 0), str(details.get("tensor", ""))
        key = (teller.facts.group, path, line, tensor)
        number, count = self._told.get(key, ("", 0))
        members = {rank: self._member(teller, int(rank)) for rank in about.get("ranks", ())}
        facts = [member.facts for member in members.values() if member is not None]
        ranks = write_set(facts, among=[member.facts for member in self._fleet.members.values()])
        first = next((member for member in members.values() if member is not None), teller)
        text = str(about.get("text", ""))
        changes = {
            "text": f"{text} (at {count + 1} checks)" if count else text,
            "ranks": ranks,
            "details": {**details, "places": self._places(members, about), "count": count + 1},
        }
        if number:
            self._fleet.findings.change(number, **changes)
        else:
            finding = {
                "kind": KIND,
                "severity": "warning" if tensor.startswith("rng.") else "error",
                "at": float(about.get("at") or 0.0),
                "member": first.id,
                "label": first.label,
                "path": path,
                "line": line,
                "name": about.get("name"),
                "message": about.get("message"),
                "type": tensor,
            }
            number = self._fleet.findings.add({**finding, **changes})
            self._fleet.notice("failure", f"divergence at {Path(path).name}:{line}: {text}")
        self._told[key] = (number, count + 1)

    def _member(self, teller: Member, rank: int) -> Member | None:
        """The newest process of a rank in the teller's group."""
        facts = teller.facts
        found = [
            member
            for member in self._fleet.members.values()
            if (member.facts.role, member.facts.group, member.facts.rank) == ("rank", facts.group, rank)
        ]
        return found[-1] if found else None

    @staticmethod
    def _places(members: Mapping[int, Member | None], about: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = []
        for place in about.get("places", ()):
            member = members.get(place.get("rank"))
            label = f"rank {place.get('rank')}" if member is None else member.label
            found.append({"label": label, "path": place.get("path"), "line": place.get("line"), "text": "deviates"})
        return found


def for_job(settings: SyncSettings | None, base: Path) -> dict[str, Any]:
    """What the job's processes are told to compare; ``ignored`` holds for the checks that stand in its code, too."""
    ignored = list(ignored_tensors(base))
    told: dict[str, Any] = {"ignored": ignored} if ignored else {}
    if settings is None:
        return told
    return {
        **told,
        "isOn": True,
        "interval": settings.interval or None,
        "what": settings.what,
        "tolerance": settings.tolerance,
        "batches": settings.batches or None,
        "timeout": settings.timeout,
        "bisect": left_open(base) if settings.bisect else None,
    }


def left_open(base: Path) -> list[int] | None:
    """The steps between which the divergence of the newest run that has one began; ``None`` when it is known."""
    for folder in sorted((base / RUNS).glob("*"), reverse=True):
        last = {str(entry.get("id")): entry for entry in journal.read(folder / FINDINGS, "findings").entries}
        found = [steps for entry in last.values() if (steps := _steps(entry)) is not None]
        if found:
            return min(([good, bad] for good, bad in found if bad > good + 1), key=lambda pair: pair[1], default=None)
    return None


def _steps(finding: Mapping[str, Any]) -> tuple[int, int] | None:
    details = finding.get("details")
    if finding.get("kind") != KIND or not isinstance(details, dict):
        return None
    good, bad = details.get("lastGood"), details.get("firstBad")
    return (good, bad) if isinstance(good, int) and isinstance(bad, int) else None
