"""How each entry of the wanted table stands: bound where, awaited by whom, hit how often."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rankscope.hub.entries import EXCEPTION, LINE, Breakpoint
from rankscope.ranks import DRIVER, RankFacts

if TYPE_CHECKING:
    from rankscope.hub.breakpoints import Wanted
    from rankscope.hub.member import Member

_MAX_NAMES = 3
_NO_DEBUG = "the job runs without debugging"


@dataclass(frozen=True)
class _Merged:
    """The members that an entry concerns, their answers (``None``: not yet), and how many are still to come."""

    answers: dict[str, dict[str, Any] | None]
    pending: int

    @property
    def bound(self) -> dict[str, dict[str, Any]]:
        return {member: answer for member, answer in self.answers.items() if answer and answer.get("verified")}

    @property
    def reasons(self) -> list[str]:
        """Why it is not bound where it is not, each once."""
        texts = (
            str(answer["message"]).strip()
            for answer in self.answers.values()
            if answer and not answer.get("verified") and answer.get("message")
        )
        return list(dict.fromkeys(texts))


class Standing:
    """Merges what the members answered, and counts whom each entry has stopped. Owns the counts."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._hits: defaultdict[int, dict[str, int]] = defaultdict(dict)
        self._compiled: dict[str, set[int]] = {}

    # --- hits -------------------------------------------------------------------------------------

    def stopped(self, member: Member, entries: Iterable[int]) -> bool:
        """A member has stopped at these entries; whether there were any."""
        is_any = False
        for entry in entries:
            is_any = True
            hits = self._hits[entry]
            hits[member.id] = hits.get(member.id, 0) + 1
        return is_any

    def forget(self) -> None:
        """A new run begins."""
        self._hits.clear()
        self._compiled.clear()

    def note_compiled(self, member: Member, entries: set[int]) -> bool:
        """At these entries of its own the member's lines run compiled; whether that is news."""
        if self._compiled.get(member.id, set()) == entries:
            return False
        self._compiled[member.id] = entries
        return True

    # --- as the editor wants it -------------------------------------------------------------------

    def status(self, entry: Breakpoint) -> dict[str, Any]:
        """The DAP breakpoint of an entry, merged over the members it concerns; without an id."""
        body: dict[str, Any] = {"verified": False}
        if entry.kind == LINE:
            body |= {"line": entry.line, "source": {"path": entry.where}}
        if entry.error or self._wanted.settings.no_debug:
            return {**body, "message": entry.error or _NO_DEBUG}
        merged = self._merge(entry)
        bound = list(merged.bound.values())
        joined = len(merged.answers)
        body["verified"] = bool(bound) or (entry.kind == EXCEPTION and not joined)
        if bound and bound[0].get("line"):
            body["line"] = bound[0]["line"]
        if entry.kind != EXCEPTION and (not bound or merged.pending or len(bound) < joined):
            body["message"] = _summary(merged)
        compiled = self._compiled_text(entry, merged)
        if compiled:
            body["message"] = "; ".join(filter(None, (body.get("message"), compiled)))
        return body

    def reports(self) -> list[dict[str, Any]]:
        """Every line breakpoint, as ``rankscope/breakpoints`` answers."""
        return [self._report(entry) for entry in self._wanted.all() if entry.kind == LINE and entry.only is None]

    def _report(self, entry: Breakpoint) -> dict[str, Any]:
        merged = self._merge(entry)
        bound = list(merged.bound)
        is_bound_nowhere = bool(merged.answers) and not bound
        return {
            "path": entry.where,
            "line": entry.line,
            "ranks": "" if entry.condition.ranks is None else entry.condition.ranks.text,
            "isBarrier": entry.condition.is_barrier,
            "error": entry.error
            or ("; ".join(merged.reasons) if is_bound_nowhere else self._compiled_text(entry, merged)),
            "joined": list(merged.answers),
            "verified": bound,
            "pending": merged.pending,
            "hits": dict(self._hits.get(entry.id, {})),
        }

    def _compiled_text(self, entry: Breakpoint, merged: _Merged) -> str:
        """Where its line runs compiled and has stopped nobody; empty when nowhere."""
        fleet = self._wanted.fleet
        hits = self._hits.get(entry.id, {})
        where = [
            fleet.members[member].label
            for member in merged.bound
            if fleet is not None and entry.id in self._compiled.get(member, ()) and member not in hits
        ]
        if not where:
            return ""
        names = ", ".join(where[:_MAX_NAMES]) + (f" and {len(where) - _MAX_NAMES} more" if where[_MAX_NAMES:] else "")
        return f"this line runs compiled (torch.compile) on {names}; it cannot stop there"

    # --- merging ----------------------------------------------------------------------------------

    def _merge(self, entry: Breakpoint) -> _Merged:
        fleet = self._wanted.fleet
        joined = [
            member
            for member in ([] if fleet is None else fleet.select(None))
            if entry.concerns(member) and (member.facts.role in (DRIVER, "rank") or member.is_armed)
        ]
        answers = {member.id: self._wanted.answer(entry, member) for member in joined}
        unanswered = sum(answer is None for answer in answers.values())
        return _Merged(answers, unanswered + len(still_to_join(entry, joined)))


def still_to_join(entry: Breakpoint, joined: Iterable[Member]) -> list[tuple[str, int]]:
    """Group and rank of those that an entry concerns, that are not there, of the worlds that have begun to join."""
    worlds: dict[str, int] = {}
    here: set[tuple[str, int | None]] = set()
    for member in joined:
        facts = member.facts
        if facts.role == "rank" and facts.world_size:
            worlds[facts.group] = max(worlds.get(facts.group, 0), facts.world_size)
            here.add((facts.group, facts.rank))
    return [
        (group, rank)
        for group, size in worlds.items()
        for rank in range(size)
        if (group, rank) not in here and entry.may_stop(RankFacts(group=group, rank=rank, is_final=True))
    ]


def _summary(merged: _Merged) -> str:
    joined = len(merged.answers)
    if not joined:
        return "no rank that it concerns has joined yet"
    text = f"{len(merged.bound)} of {joined} joined" + (f", {merged.pending} pending" if merged.pending else "")
    return "; ".join([text, *merged.reasons])
