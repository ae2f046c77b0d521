"""Arrays and tensors of a dump: a line and a few facts as texts, without moving them and within bounds.

Only CPU memory is measured: after a failure a device may never answer again.
"""

from __future__ import annotations

import contextlib
import math
import sys
from dataclasses import dataclass, field
from typing import Any

from rankscope.tensors import kinds, statistics
from rankscope.tensors.line import line_of, value_text

Facts = dict[str, str]
_KINDS = {"tensor", "ndarray", "dataframe", "series"}


@dataclass
class Array:
    """An array as it is described at once; :func:`measure` reads up to ``size`` of its elements, if it may."""

    found: kinds.Described
    line: str
    facts: Facts = field(default_factory=dict)
    size: int = 0


def describe(value: object) -> Array | None:
    """Shape, dtype and place of a tensor, array or table; ``None`` when it is none of them."""
    found = kinds.describe(value)
    if found is None or found.kind not in _KINDS:
        return None
    names = {"shape": "shape", "dtype": "dtype", "device": "device", "requiresGrad": "requires_grad"}
    names |= {"placement": "placements", "mesh": "mesh", "layout": "layout"}
    facts = {name: str(found.facts[key]) for key, name in names.items() if found.facts.get(key) is not None}
    if "local" in found.facts:
        facts["values of"] = "the local shard"
    is_near = found.source is not None and found.facts.get("device", "cpu") == "cpu"
    size = math.prod(found.facts.get("local") or found.facts["shape"]) if is_near else 0
    return Array(found, line_of(found, None), facts, size)


def measure(array: Array, until: float) -> None:
    """Add min, max, mean, NaN and Inf counts to an array's facts, reading until the time ``until`` (monotonic)."""
    plain, note = kinds.readable(array.found.source)
    array.found.source = None
    array.found.note = array.found.note or note
    numbers = None
    if plain is not None:
        torch: Any = sys.modules.get("torch")
        with contextlib.nullcontext() if torch is None else kinds.untouched(torch):
            numbers = statistics.measure(plain, until)
    array.line = line_of(array.found, numbers)
    if numbers is None:
        return
    more = ", …" if numbers.size > len(numbers.first) else ""
    array.facts |= {"values": ", ".join(map(value_text, numbers.first)) + more}
    array.facts |= {"NaN": str(numbers.nan), "Inf": str(numbers.inf)}
    if numbers.finite:
        ends = {"min": numbers.low, "max": numbers.high, "mean": numbers.mean}
        array.facts |= {name: f"{number:.6g}" for name, number in ends.items()}
    if numbers.is_partial:
        array.facts["measured"] = f"{numbers.seen:,} of {numbers.size:,}"
