"""The largest |Δ| of every rank's answer against one rank's: numbers here, tensors there, a chunk at a time.

A chunk of the reference's tensor goes from its process over its link to the hub and on to each of the others; the
ranks do not talk to one another. At most :data:`MAX_ELEMENTS` of a tensor are compared. One chunk, 8 MB at most, is
under way at a time; what the links have not yet taken of it is all that the hub holds.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rankscope.dap.messages import DapError
from rankscope.hub.compare import Row, number_of

if TYPE_CHECKING:
    from rankscope.hub.member import Member

SECONDS = 30.0
MAX_ELEMENTS = 64 << 20
CHUNK = 1 << 20
_CHUNK_SECONDS = 10.0

Delta = dict[str, Any]


async def add(rows: Sequence[Row], members: Mapping[str, Member], reference: str, keep: str) -> None:
    """Give each row that can be compared with the reference's a ``delta``, within :data:`SECONDS`.

    ``{max, mean, index, nan, note}``: ``index`` is where ``max`` is, ``nan`` how often just one of the two is NaN,
    ``note`` what is to be known besides, or why there is nothing (``max`` is null then). With the reference's digest
    it is 0 without a look at the elements.
    """
    base = next((row for row in rows if row["member"] == reference), None)
    others = [row for row in rows if row is not base]
    try:
        if base is None or base["kind"] not in ("number", "tensor"):
            for row in others:
                row["delta"] = _nothing("the reference has no number and no tensor")
        else:
            await _add(base, others, members, keep)
    finally:
        keepers = [members[row["member"]] for row in rows if row["kind"] == "tensor"]
        await asyncio.gather(*(_release(member, keep) for member in keepers))


async def _add(base: Row, others: Sequence[Row], members: Mapping[str, Member], keep: str) -> None:
    alike = []
    for row in others:
        if base["kind"] == "number" or row["kind"] != "tensor":
            row["delta"] = _of_numbers(base, row)
        elif base["tensor"].get("digest") and _same(row) == _same(base):
            row["delta"] = {"max": 0.0, "mean": 0.0, "index": None, "nan": 0, "note": None}
        elif _shape(row) != _shape(base):
            row["delta"] = _nothing(f"its shape is {_shape(row)}, the reference's {_shape(base)}")
        else:
            alike.append(row)
    if alike:
        await _Tensors(base, alike, members, keep).compare(time.monotonic() + SECONDS)


class _Tensors:
    """One comparison of tensors of the same shape, those of ``rows`` with that of ``base``."""

    def __init__(self, base: Row, rows: Sequence[Row], members: Mapping[str, Member], keep: str) -> None:
        self._base = members[base["member"]]
        self._shape = _shape(base)
        self._size = math.prod(self._shape) * (2 if "complex" in str(base["tensor"].get("dtype")) else 1)
        self._totals = {row["member"]: _Total(row) for row in rows}
        self._members = members
        self._keep = keep

    async def compare(self, until: float) -> None:
        seen, bound = 0, min(self._size, MAX_ELEMENTS)
        why = ""
        while seen < bound and time.monotonic() < until and any(total.is_open for total in self._totals.values()):
            try:
                chunk = await _later(self._base, "chunk", self._keep, start=seen, count=min(CHUNK, bound - seen))
                count = len(chunk["data"]) // (8 if chunk["isDouble"] else 4)
            except (DapError, TimeoutError, asyncio.TimeoutError, KeyError, TypeError) as e:
                why = f"{self._base.label}, the reference: {str(e) or 'no answer in time'}"
                break
            if not count:
                break
            await asyncio.gather(*(self._one(total, seen, chunk) for total in self._totals.values() if total.is_open))
            seen += count
        for total in self._totals.values():
            total.finish(seen, self._size, self._shape, why)

    async def _one(self, total: _Total, start: int, chunk: dict[str, Any]) -> None:
        member = self._members[total.row["member"]]
        try:
            passed = {"start": start, "data": chunk["data"], "isDouble": chunk["isDouble"]}
            total.add(start, await _later(member, "delta", self._keep, **passed))
        except (DapError, TimeoutError, asyncio.TimeoutError, KeyError, TypeError, ValueError) as e:
            total.fail(str(e) or "no answer in time")


class _Total:
    """What is known so far of one rank's differences."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.is_open = True
        self._max, self._at, self._sum, self._nan = -1.0, 0, 0.0, 0
        self._why = ""

    def add(self, start: int, found: dict[str, Any]) -> None:
        largest, at, nan = float(found["max"]), int(found["at"]), int(found["nan"])
        if (nan and not self._nan) or (not self._nan and largest > self._max):
            self._at = start + at
        self._max = max(self._max, largest)
        self._sum += float(found["sum"])
        self._nan += nan

    def fail(self, why: str) -> None:
        self.is_open = False
        self._why = why

    def finish(self, seen: int, size: int, shape: Sequence[int], why: str) -> None:
        why = self._why or why
        if why or not seen:
            self.row["delta"] = _nothing(why or "there are no elements")
            return
        notes = ["of local shards"] if self.row["tensor"].get("placement") else []
        notes += [f"of the first {seen:,} of {size:,} elements"] if seen < size else []
        notes += [f"{self._nan:,} places where just one is NaN"] if self._nan else []
        self.row["delta"] = {
            "max": _told(self._max),
            "mean": _told(self._sum / max(1, seen - self._nan)),
            "index": _index(self._at if math.prod(shape) == size else self._at // 2, shape),
            "nan": self._nan,
            "note": ", ".join(notes) or None,
        }


async def _later(member: Member, what: str, keep: str, **arguments: Any) -> dict[str, Any]:
    """The answer to a question that the agent answers from another thread."""

    async def begin(number: int) -> None:
        await member.ask(what, {"keep": keep, "reply": number, **arguments}, timeout=_CHUNK_SECONDS)

    return await member.replied(begin, timeout=_CHUNK_SECONDS)


async def _release(member: Member, keep: str) -> None:
    try:
        await member.ask("release", {"keep": keep})
    except (DapError, TimeoutError, asyncio.TimeoutError):
        return  # it lets go of it when it runs on, or of the oldest when there are many


def _of_numbers(base: Row, row: Row) -> Delta:
    mine, theirs = number_of(row), number_of(base)
    if mine is None or theirs is None:
        return _nothing("it is nothing that can be compared with the reference")
    is_same = mine == theirs or (math.isnan(mine) and math.isnan(theirs))
    gap = 0.0 if is_same else abs(mine - theirs)
    return {"max": _told(gap), "mean": _told(gap), "index": None, "nan": int(math.isnan(gap)), "note": None}


def _nothing(why: str) -> Delta:
    return {"max": None, "mean": None, "index": None, "nan": 0, "note": why}


def _shape(row: Row) -> list[int]:
    """Of the elements that are there: of a DTensor those of the local shard."""
    tensor = row.get("tensor") or {}
    return [int(size) for size in tensor.get("local") or tensor.get("shape") or ()]


def _same(row: Row) -> list[Any]:
    """Equal for tensors that have all elements in common."""
    return [row["tensor"].get(key) for key in ("digest", "dtype")] + [_shape(row)]


def _index(at: int, shape: Sequence[int]) -> list[int]:
    index = []
    for size in reversed(shape):
        at, part = divmod(at, size)
        index.append(part)
    return index[::-1]


def _told(number: float) -> float | str:
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity"
