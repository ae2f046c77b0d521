"""What a check has found, the same on every rank."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankscope.checks.locate import Located
from rankscope.checks.plan import Misfit, Plan
from rankscope.errors import UserError
from rankscope.ranks import RankFacts, write_set

Number = Any
_SHOWN = 10
_VALUES = 3  # shown in a line, the majority's last
BISECT_VARIABLE = "SYNC_CHECK_BISECT"


@dataclass(frozen=True)
class TensorDifference:
    """One tensor that is not the same on all ranks that ought to have it alike. Ranks are global ones.

    ``what`` is ``values``, ``missing``, ``shape``, ``dtype``, ``kind``, ``layout``, ``value`` or ``batch``.
    ``deviating`` stands against ``majority``; with ``is_tie`` nobody can tell which of them is wrong. Of values:
    ``max_abs``, the largest |Δ| (infinite where one is NaN) at ``max_index``; ``first_index``, the first element beyond
    the tolerance; how many elements of ``count`` are ``beyond`` it and how many are ``differing`` at all, on the rank
    that differs most; ``values``, by rank, at ``first_index`` (one rank of each kind). Else ``values`` says what each
    rank has.
    ``since`` are the last step at which it was good and the first at which it was not, where steps are counted.
    """

    name: str
    what: str
    deviating: tuple[int, ...]
    majority: tuple[int, ...]
    is_tie: bool = False
    max_abs: float | None = None
    max_index: tuple[int, ...] | None = None
    first_index: tuple[int, ...] | None = None
    beyond: int = 0
    differing: int = 0
    count: int = 0
    values: Mapping[int, Number] = field(default_factory=dict)
    part: str = ""
    since: tuple[int, int] | None = None

    @property
    def text(self) -> str:
        """One line."""
        return f"{self._what_differs()}{_since(self.since)}"

    def _what_differs(self) -> str:
        shown = ", ".join(f"{value} on rank {rank}" for rank, value in list(self.values.items())[-_VALUES:])
        if self.what == "missing":
            there = [rank for rank, text in self.values.items() if text == "there"]
            absent = self.majority if there and there[0] in self.deviating else self.deviating
            return f"'{self.name}' is missing on {rank_set(absent)}"
        if self.what == "batch":
            text = next(iter(self.values.values()))
            if not self.majority:
                return f"the same batch is read by {text}"
            return f"{rank_set(self.deviating)} read {text} {rank_set(self.majority)}"
        who = f"{rank_set(self.deviating)} against {rank_set(self.majority)}"
        who += ", no majority" if self.is_tie else ""
        if self.what != "values":
            return f"'{self.name}': {self.what} differs: {who} ({shown})"
        largest = "a NaN against a number" if self.max_abs == math.inf else f"max |Δ| {self.max_abs:.6g}"
        where = f" at {list(self.max_index)}" if self.max_index else ""
        first = f"; first at {list(self.first_index)}: {shown}" if self.first_index else f": {shown}"
        of = f"{self.beyond} of {self.count} elements{' in its ' + self.part if self.part else ''}"
        return f"'{self.name}' differs: {who}: {largest}{where}, {of}{first}"


def _since(steps: tuple[int, int] | None) -> str:
    if steps is None:
        return ""
    good, bad = steps
    if bad <= good + 1:
        return f", since step {bad}"
    return f", since a step from {good + 1} to {bad} ({BISECT_VARIABLE}={good}-{bad} in a repeated run finds it)"


@dataclass(frozen=True)
class SyncReport:
    """``ok``, and what differs where it is not.

    ``skipped`` has names with why; ``compared`` and ``alone`` (shards that no other rank holds) count tensors.
    ``group`` are the global ranks that took part, ``rank`` is this process's. ``is_bitwise`` tells that all bits were
    equal, ``digest`` is of them. ``seconds`` is the time taken here.
    """

    operation_name: str
    rank: int
    group: tuple[int, ...]
    differences: tuple[TensorDifference, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    compared: int = 0
    alone: int = 0
    bytes: int = 0
    digest: str = ""
    is_bitwise: bool = True
    seconds: float = 0.0
    places: Mapping[int, tuple[str, int, str]] = field(default_factory=dict)  # path, line, function, of each rank

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    def __bool__(self) -> bool:
        return self.ok

    @property
    def deviating(self) -> tuple[int, ...]:
        """Every rank that deviates in anything."""
        return tuple(sorted({rank for difference in self.differences for rank in difference.deviating}))

    @property
    def is_deviating(self) -> bool:
        """Whether this rank does."""
        return self.rank in self.deviating

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """For people: a line, and one for each difference."""
        name = f" '{self.operation_name}'" if self.operation_name else ""
        if self.ok:
            head = f"{self.compared} tensors are equal on {len(self.group)} ranks{name}"
        else:
            count = len(self.differences)
            head = (
                f"{count} of {self.compared + count} tensors differ{name}" if count > 1 else f"1 tensor differs{name}"
            )
        lines = [head, *(difference.text for difference in self.differences[:_SHOWN])]
        if len(self.differences) > _SHOWN:
            lines.append(f"… and {len(self.differences) - _SHOWN} more")
        if self.skipped:
            some = ", ".join(f"'{name}' ({why})" for name, why in list(self.skipped.items())[:_SHOWN])
            more = f" and {len(self.skipped) - _SHOWN} more" if len(self.skipped) > _SHOWN else ""
            lines.append(f"not compared: {some}{more}")
        return "\n".join(lines)


class TensorsDiffer(UserError):
    """Raised by ``on_mismatch="raise"``; ``report`` is the :class:`SyncReport`."""

    def __init__(self, report: SyncReport) -> None:
        super().__init__("tensors-differ", report.text, "")
        self.report = report


def differences(plan: Plan, located: Iterable[Located], ranks: Sequence[int]) -> list[TensorDifference]:
    """What of a plan and of what was located differs, by name; ``ranks`` are the global ranks of the group's."""
    found = [_of_misfit(misfit, ranks) for misfit in plan.misfits]
    found += [_of_values(each, ranks) for each in located if each.deviating]
    return sorted(found, key=lambda difference: difference.name)


def _of_misfit(misfit: Misfit, ranks: Sequence[int]) -> TensorDifference:
    majority, *others = misfit.groups
    return TensorDifference(
        misfit.name,
        misfit.what,
        _global(sorted(rank for group in others for rank in group), ranks),
        _global(majority, ranks),
        len(others[0]) == len(majority),
        values={ranks[group[0]]: text for group, text in zip(misfit.groups, misfit.texts, strict=True)},
    )


def _of_values(located: Located, ranks: Sequence[int]) -> TensorDifference:
    deviating = located.deviating
    majority = [rank for rank in located.members if rank not in deviating]
    found = {rank: each for rank, each in located.found.items() if rank in deviating}
    worst = max(found.values(), key=lambda each: float(each["max"]))
    first = min(found.values(), key=lambda each: tuple(each["firstAt"]))
    at = first["firstAt"]
    values = {ranks[rank]: each["first"][0] for rank, each in found.items() if each["firstAt"] == at}
    return TensorDifference(
        located.suspect.name,
        "values",
        _global(deviating, ranks),
        _global(majority, ranks),
        is_tie=2 * len(deviating) >= len(located.members),
        max_abs=float(worst["max"]),
        max_index=_tuple(worst["maxIndex"]),
        first_index=_tuple(first["firstIndex"]),
        beyond=int(worst["beyond"]),
        differing=int(worst["differing"]),
        count=int(worst["count"]),
        values={**values, ranks[located.reference]: first["first"][1]},
        part=f"part {at[0]}" if worst["parts"] > 1 else "",
    )


def _tuple(index: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if index is None else tuple(index)


def _global(numbers: Iterable[int], ranks: Sequence[int]) -> tuple[int, ...]:
    return tuple(ranks[number] for number in numbers)


def rank_set(ranks: Sequence[int]) -> str:
    text = write_set(RankFacts(role="rank", rank=rank) for rank in ranks)
    return f"rank{'s' if len(ranks) > 1 else ''} {text}"
