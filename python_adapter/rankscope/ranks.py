"""Who a process is in the job, and sets of such processes.

Imported in every member, so standard library only and cheap to import.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rankscope.errors import RankSetError

DRIVER = "driver"
_MAX_NAMED = 10_000
_DECIMAL = frozenset("0123456789")


@dataclass(frozen=True, slots=True)
class RankId:
    """The identity of a rank: two groups may both have a rank 0."""

    group: str
    rank: int

    def __str__(self) -> str:
        return f"{self.group}/{self.rank}"


@dataclass(frozen=True, slots=True)
class RankFacts:
    """What is known about one member's place in the job.

    ``role`` is ``driver``, ``rank``, ``child`` (of a rank or of the driver) or
    ``idle`` (a pooled Ray worker that has run nothing yet). A child carries its
    parent's group and rank. ``rank`` and ``local_rank`` are ``None`` while
    unknown; ``is_final`` is false while the rank is only the order of creation.
    ``node`` is the index of the node in the job (0-based), given by the hub.
    """

    role: str = "rank"
    group: str = ""
    rank: int | None = None
    world_size: int | None = None
    local_rank: int | None = None
    node: int | None = None
    is_final: bool = False

    def with_changes(self, **changes: object) -> RankFacts:
        """A copy with some facts replaced."""
        return replace(self, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Part:
    """One comma-separated part: a scope (group, ``local``, ``node``) and a stretch of numbers."""

    group: str | None
    axis: str  # "rank", "local", "node" or "driver"
    first: int
    last: int | None  # None: no upper end ("all")
    step: int

    def contains(self, facts: RankFacts) -> bool | None:
        if self.axis == DRIVER:
            return facts.role == DRIVER
        if facts.role == DRIVER:
            return False
        if self.group is not None and facts.group != self.group:
            return None if not facts.is_final and not facts.group else False
        if self.axis == "rank" and self.last is None and self.step == 1 and self.first == 0:
            return True
        number = {"rank": facts.rank, "local": facts.local_rank, "node": facts.node}[self.axis]
        if number is None or (self.axis == "rank" and not facts.is_final):
            return None
        return (
            number >= self.first
            and (self.last is None or number <= self.last)
            and (number - self.first) % self.step == 0
        )

    def spelled(self) -> str:
        """As it is written."""
        if self.axis == DRIVER:
            return DRIVER
        head = f"{self.group}/" if self.group else "" if self.axis == "rank" else f"{self.axis}:"
        return head + ("all" if self.last is None else _run_text((self.first, self.last, self.step)))


@dataclass(frozen=True, slots=True)
class RankSet:
    """A set of ranks as DESIGN's word list writes it. Build one with :meth:`parse`."""

    text: str
    parts: tuple[_Part, ...]

    @classmethod
    def parse(cls, text: str, names: Mapping[str, str] | None = None) -> RankSet:
        """Read ``all``, ``0``, ``0,3-5``, ``0-31:4``, ``local:0``, ``node:1``, ``actor/0-3``, ``driver``.

        ``names`` are the ``rankSets`` of launch.json; a name may use other names.
        Raises :class:`RankSetError`, which says which character is at fault.
        """
        return cls(text, tuple(_Reader(text, names or {}, ()).parts()))

    def contains(self, facts: RankFacts) -> bool | None:
        """Whether a member belongs to the set; ``None`` while its rank is not known for sure."""
        answers = [part.contains(facts) for part in self.parts]
        if any(answers):
            return True
        return None if None in answers else False

    def absent(self, facts: Sequence[RankFacts]) -> str:
        """What of the set names nobody of these, as a set: ``4-7``, ``critic/9,driver``. Empty: everything is there."""
        missing: list[str] = []
        for part in self.parts:
            if part.axis == "rank" and part.last is not None:
                head = f"{part.group}/" if part.group else ""
                there = {f.rank for f in facts if f.role != DRIVER and part.group in (None, f.group)}
                last = min(part.last, part.first + part.step * _MAX_NAMED)
                numbers = [number for number in range(part.first, last + 1, part.step) if number not in there]
                missing += [_stretches(numbers, head)] if numbers else []
                missing += ["…"] if last < part.last else []
            elif not any(part.contains(f) is not False for f in facts):
                missing.append(part.spelled())
        return ",".join(missing)

    @property
    def is_all(self) -> bool:
        """Whether this is every rank (the driver is never in it)."""
        return self.text.strip() == "all"

    def __str__(self) -> str:
        return self.text


class _Reader:
    """Reads one rank set; ``trail`` holds the names being expanded, to refuse a circle."""

    def __init__(self, text: str, names: Mapping[str, str], trail: tuple[str, ...]) -> None:
        self.text = text
        self.names = names
        self.trail = trail

    def parts(self) -> list[_Part]:
        if not self.text.strip():
            raise RankSetError(self.text, 0, "it is empty")
        found: list[_Part] = []
        at = 0
        group: str | None = None
        for piece in self.text.split(","):
            start = at + len(piece) - len(piece.lstrip())
            part, group = self._piece(piece.strip(), start, group)
            found.extend(part)
            at += len(piece) + 1
        return found

    def _piece(self, piece: str, at: int, group: str | None) -> tuple[list[_Part], str | None]:
        """One part; a group named before holds for the bare numbers after it (``actor/0,2``)."""
        if not piece:
            raise RankSetError(self.text, at, "a part is missing")
        if "/" in piece:
            group, _, rest = piece.rpartition("/")
            if not group:
                raise RankSetError(self.text, at, "the group before '/' is missing")
            at += len(group) + 1
            if rest == "all":
                return [_Part(group, "rank", 0, None, 1)], group
            return [self._stretch(group, "rank", rest, at)], group
        if piece == DRIVER:
            return [_Part(None, DRIVER, 0, None, 1)], None
        if piece == "all":
            return [_Part(None, "rank", 0, None, 1)], None
        head, colon, rest = piece.partition(":")
        if colon and head in ("local", "node"):
            return [self._stretch(None, head, rest, at + len(head) + 1)], None
        if piece[0] not in _DECIMAL:
            return self._name(piece, at), None
        return [self._stretch(group, "rank", piece, at)], group

    def _name(self, name: str, at: int) -> list[_Part]:
        if name in self.trail:
            raise RankSetError(self.text, at, f"'{name}' is defined by itself")
        if name not in self.names:
            raise RankSetError(self.text, at, f"'{name}' is neither a number nor a name in rankSets")
        return _Reader(self.names[name], self.names, (*self.trail, name)).parts()

    def _stretch(self, group: str | None, axis: str, text: str, at: int) -> _Part:
        span, colon, step_text = text.partition(":")
        step = self._number(step_text, at + len(span) + 1) if colon else 1
        if step == 0:
            raise RankSetError(self.text, at + len(span) + 1, "a stride of 0")
        low, dash, high = span.partition("-")
        first = self._number(low, at)
        last = self._number(high, at + len(low) + 1) if dash else first
        if last < first:
            raise RankSetError(self.text, at + len(low) + 1, f"{last} is smaller than {first}")
        return _Part(group, axis, first, last, step)

    def _number(self, text: str, at: int) -> int:
        if not text or not set(text) <= _DECIMAL or len(text) > 9:
            raise RankSetError(self.text, at, f"'{text}' is not a number" if text else "a number is missing")
        return int(text)


# --- writing --------------------------------------------------------------------------------------

_Run = tuple[int, int, int]  # first, last, step
_FEW_RUNS = 3


def write_set(facts: Iterable[RankFacts], among: Iterable[RankFacts] | None = None) -> str:
    """The shortest set text for these members: ``0-6,8-15``, ``0-62:2``, ``actor/0,2,critic/0-3,driver``.

    :meth:`RankSet.parse` reads it back as exactly these. Groups are named when ``among`` (everyone it is to be read
    for; these alone by default) has more than one. Who has no rank cannot be written and is left out.
    """
    by_group: dict[str, set[int]] = {}
    has_driver = False
    for fact in facts:
        if fact.role == DRIVER:
            has_driver = True
        elif fact.rank is not None:
            by_group.setdefault(fact.group, set()).add(fact.rank)
    groups = by_group if among is None else {fact.group for fact in among if fact.rank is not None} | by_group.keys()
    # Sorted, the nameless group comes first: after a named one its numbers would be that one's.
    texts = [
        _stretches(sorted(by_group[group]), f"{group}/" if len(groups) > 1 and group else "")
        for group in sorted(by_group)
    ]
    return ",".join([*texts, DRIVER] if has_driver else texts)


def _stretches(numbers: Sequence[int], head: str) -> str:
    """Different numbers, ascending, as text."""
    runs = _runs(numbers)
    text = head + ",".join(map(_run_text, runs))
    if len(runs) <= _FEW_RUNS:
        return text
    starts = [number for number, before in zip(numbers, [None, *numbers], strict=False) if before != number - 1]
    periods = Counter(later - earlier for earlier, later in itertools.pairwise(starts))
    steps = [step for step, _ in periods.most_common(2) if step > 1]
    return min([text, *(head + ",".join(map(_run_text, _combs(numbers, step))) for step in steps)], key=len)


def _runs(numbers: Sequence[int]) -> list[_Run]:
    """From the left, each as long as it goes; what is no shorter as a run stays single."""
    runs: list[_Run] = []
    at = 0
    while at < len(numbers):
        end = at + 1
        step = numbers[end] - numbers[at] if end < len(numbers) else 1
        while end < len(numbers) and numbers[end] - numbers[end - 1] == step:
            end += 1
        if not _is_worth_it(run := (numbers[at], numbers[end - 1], step), end - at):
            run, end = (numbers[at], numbers[at], 1), at + 1
        runs.append(run)
        at = end
    return runs


def _combs(numbers: Sequence[int], step: int) -> list[_Run]:
    """By remainder: what is ``step`` apart goes together, however much lies between."""
    by_remainder: dict[int, list[int]] = {}
    for number in numbers:
        by_remainder.setdefault(number % step, []).append(number)
    runs: list[_Run] = []
    for teeth in by_remainder.values():
        quotients = _runs([tooth // step for tooth in teeth])
        rest = teeth[0] % step
        runs += [(first * step + rest, last * step + rest, each * step) for first, last, each in quotients]
    return sorted(runs)


def _is_worth_it(run: _Run, count: int) -> bool:
    first, last, step = run
    listed = sum(len(str(number)) + 1 for number in range(first, last + 1, step)) - 1
    return count > 2 and (step == 1 or len(_run_text(run)) < listed)


def _run_text(run: _Run) -> str:
    first, last, step = run
    return str(first) if first == last else f"{first}-{last}" + (f":{step}" if step > 1 else "")
