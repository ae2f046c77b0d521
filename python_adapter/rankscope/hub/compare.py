"""Answers of many ranks side by side: cleaned rows, equal ones grouped, numbers summed up. No member is asked here."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

Row = dict[str, Any]
Group = dict[str, Any]

ANSWERED = ("number", "tensor", "text", "error")
KINDS = (*ANSWERED, "late", "running")
MAX_TEXT = 4_200
_MAX_PARTS = 64
_MAX_DEPTH = 4
_FAR = 3.5
_FEWEST = 3
_TO_SIGMA = 1.4826
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def row(who: dict[str, Any], answer: object) -> Row:
    """What one member answered, cleaned: whatever it sent, the row has the right shape and a bounded size.

    ``who`` says whose it is and is taken as it stands. ``value`` is a number, or ``NaN``, ``Infinity``, ``-Infinity``.
    """
    told = answer if isinstance(answer, dict) else {}
    kind, text = told.get("kind"), told.get("text")
    number = _as_json(told["value"]) if type(told.get("value")) in (int, float) else None
    is_number = isinstance(number, (int, float)) or number in _NOT_FINITE
    if kind not in KINDS or not isinstance(text, str) or (kind == "number" and not is_number):
        size = len(repr(answer)) if isinstance(answer, (dict, str)) else 0
        kind, text, told = "error", f"its answer cannot be read ({size:,} characters)", {}
    cleaned: Row = {**who, "kind": kind, "text": text[:MAX_TEXT], "type": str(told.get("type") or "")[:200]}
    if kind == "number":
        cleaned["value"] = number
    if kind == "error":
        cleaned["error"] = cleaned["text"]
    for key in ("tensor", "frame"):
        if isinstance(told.get(key), dict):
            cleaned[key] = _as_json(told[key])
    return cleaned


def number_of(row: Row) -> float | None:
    """The number of a row, ``None`` when it has none."""
    value = row.get("value") if row["kind"] == "number" else None
    return _NOT_FINITE[value] if isinstance(value, str) else None if value is None else float(value)


def groups(rows: Sequence[Row], write: Callable[[Sequence[Row]], str]) -> list[Group]:
    """Equal answers together: answers before silence, most members first, then by the order of the rows.

    ``write`` names the members of some rows. ``isMajority``: more than half of those that answered say so.
    """
    alike: dict[tuple[str, ...], list[Row]] = {}
    for one in rows:
        alike.setdefault(_key(one), []).append(one)
    answered = sum(one["kind"] in ANSWERED for one in rows)
    ordered = sorted(alike.values(), key=lambda same: (same[0]["kind"] not in ANSWERED, -len(same)))
    return [
        {
            "text": _text(same),
            "kind": same[0]["kind"],
            "ranks": write(same),
            "members": [one["member"] for one in same],
            "count": len(same),
            "isMajority": same[0]["kind"] in ANSWERED and 2 * len(same) > answered,
        }
        for same in ordered
    ]


def statistics_of(rows: Sequence[Row]) -> dict[str, Any] | None:
    """Of the rows that are numbers; ``None`` without any.

    ``min``, ``max``, ``mean``, ``std`` (of all, not of a sample) are over the finite ones and null without any;
    ``nan`` and ``inf`` are counts; ``outliers`` are members whose number lies more than 3.5 robust deviations
    (median absolute deviation) from the median: where at least half are equal, all that differ from those.
    """
    numbers = {one["member"]: number for one in rows if (number := number_of(one)) is not None}
    if not numbers:
        return None
    finite = [number for number in numbers.values() if math.isfinite(number)]
    told: dict[str, Any] = dict.fromkeys(("min", "max", "mean", "std"))
    if finite:
        mean = math.fsum(number / len(finite) for number in finite)
        told = {"min": min(finite), "max": max(finite), "mean": mean, "std": _deviation(finite, mean)}
    return {
        **{key: _as_json(number) for key, number in told.items()},
        "nan": sum(math.isnan(number) for number in numbers.values()),
        "inf": sum(math.isinf(number) for number in numbers.values()),
        "outliers": _outliers({who: number for who, number in numbers.items() if math.isfinite(number)}),
    }


def message(rows: Sequence[Row], found: Sequence[Group], *, absent: str = "", warning: str | None = None) -> str:
    """The comparison in a sentence: how many answered, how they differ, who is late and whom nobody is."""
    answered = [group for group in found if group["kind"] in ANSWERED]
    count = sum(group["count"] for group in answered)
    parts = [f"{count} of {len(rows)} ranks answered"]
    if len(answered) > 1:
        parts[0] += f", {len(answered)} different answers"
    elif count > 1:
        parts[0] += ", all alike"
    kinds = Counter(one["kind"] for one in rows)
    late = [one["label"] for one in rows if one["kind"] == "late"]
    if late:
        parts.append(f"late: {_listed(late)}")
    if kinds["running"]:
        parts.append(f"{kinds['running']} running: only names, attributes and indexes can be looked up there")
    if absent:
        parts.append(f"no such rank: {absent}")
    return "; ".join([*parts, *([warning] if warning else [])])


def lines(found: Sequence[Group], *, absent: str = "", warning: str | None = None) -> str:
    """The groups as text: ``0-2,4: 0.25``, a line each."""
    told = [f"{group['ranks']}: {group['text']}" for group in found]
    told += [f"{absent}: no such rank"] if absent else []
    return "\n".join([*told, *([f"({warning})"] if warning else [])])


def _key(row: Row) -> tuple[str, ...]:
    """The same for rows that say the same."""
    tensor = row.get("tensor") if row["kind"] == "tensor" else None
    if tensor is None:
        return (row["kind"], row["text"])
    what = [str(tensor.get(name)) for name in ("kind", "shape", "dtype", "placement", "local")]
    if tensor.get("digest"):
        return ("tensor", *what, str(tensor["digest"]))
    return ("tensor", *what, row["text"].replace(str(tensor.get("device")), ""))


def _text(same: Sequence[Row]) -> str:
    """What a group says: of tensors without the devices they differ in, and with the digest that they share."""
    text = str(same[0]["text"])
    tensors = [one["tensor"] for one in same if one["kind"] == "tensor" and "tensor" in one]
    if not tensors:
        return text
    devices = {str(tensor.get("device")) for tensor in tensors}
    if len(devices) > 1:
        text = text.replace(f" {tensors[0].get('device')}", "", 1)
    name, _, digest = str(tensors[0].get("digest") or "").partition(":")
    return f"{text} · {name} {digest[:8]}" if digest else f"{text} · not compared by value"


def _deviation(numbers: Sequence[float], mean: float) -> float:
    """The standard deviation, without an overflow on the way."""
    gaps = [number - mean for number in numbers]
    largest = max(map(abs, gaps))
    if not math.isfinite(largest) or largest == 0:
        return largest
    return largest * math.sqrt(math.fsum((gap / largest) ** 2 for gap in gaps) / len(gaps))


def _outliers(numbers: dict[str, float]) -> list[str]:
    if len(numbers) < _FEWEST:  # of two that differ neither is the odd one
        return []
    median = statistics.median_low(numbers.values())
    gaps = {who: abs(number - median) for who, number in numbers.items()}
    bound = _FAR * _TO_SIGMA * statistics.median_low(gaps.values())
    return [who for who, gap in gaps.items() if gap > bound]


def _as_json(value: Any, depth: int = 0) -> Any:
    """A value that JSON can hold, bounded: what it cannot is spelt out, what is too much is cut."""
    if value is None or isinstance(value, (bool, int)):
        return value if not isinstance(value, int) or abs(value) < 1 << 1024 else str(value)[:100]
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict) and depth < _MAX_DEPTH:
        return {str(key)[:200]: _as_json(part, depth + 1) for key, part in list(value.items())[:_MAX_PARTS]}
    if isinstance(value, (list, tuple)) and depth < _MAX_DEPTH:
        return [_as_json(part, depth + 1) for part in value[:_MAX_PARTS]]
    return str(value)[:MAX_TEXT]


def _listed(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
