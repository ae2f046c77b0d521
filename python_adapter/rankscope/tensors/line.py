"""A value and its statistics in one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rankscope.tensors.kinds import Described
from rankscope.tensors.statistics import Statistics


def line_of(found: Described, statistics: Statistics | None) -> str:
    """A value's line from what is known of it."""
    parts = [found.head]
    if statistics is not None:
        dtype = str(found.facts["dtype"])
        if found.facts["shape"] == []:
            parts += [value_text(one) for one in statistics.first]
        else:
            parts += _numbers(statistics, dtype)
        if statistics.is_partial:
            parts.append(f"of the first {statistics.seen / statistics.size:.0%}")
    if found.note:
        parts.append(found.note)
    return " · ".join(parts)


def _numbers(statistics: Statistics, dtype: str) -> Iterator[str]:
    if "bool" in dtype:
        yield f"True {int(statistics.total)} of {statistics.seen}"
    elif statistics.finite:
        low, high, mean = (_number(number) for number in (statistics.low, statistics.high, statistics.mean))
        yield f"{'|z| ' if 'complex' in dtype else ''}min {low} max {high} mean {mean}"
    if "float" in dtype or "complex" in dtype:
        yield f"NaN {statistics.nan} Inf {statistics.inf}"
    if statistics.size == len(statistics.first):
        yield f"[{', '.join(map(value_text, statistics.first))}]"


def _number(number: float | None) -> str:
    return (str(number) if isinstance(number, int) else f"{number:.4g}").replace("-", "−")


def value_text(value: Any) -> str:
    """An element as Python writes it, with six digits."""
    return f"{value:.6g}" if isinstance(value, (float, complex)) else str(value)
