"""Tensors, arrays, tables and batches as they are shown: bounded in time, without a word to any other rank.

The values are read on a thread of their own, so that no mode, gradient or stream of the person's thread takes part, and
a device that never answers (a collective that hangs) holds nobody up.
"""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rankscope.agent import device_streams
from rankscope.agent.debugger import hide_from_debugger
from rankscope.tensors.digest import digest_of
from rankscope.tensors.kinds import Described, describe, readable
from rankscope.tensors.line import line_of
from rankscope.tensors.statistics import Statistics, measure

SECONDS = 2.0
_DIGEST_SECONDS = 5.0
_GRACE = 1.0


def summary(value: Any, seconds: float = SECONDS) -> dict[str, Any]:
    """What a value is and holds, as JSON, within about ``seconds``; empty when it is nothing of the kind.

    ``kind`` (tensor, ndarray, dataframe, series, tensordict, dataproto), ``type``, ``shape``, ``dtype``, ``device``;
    of a DTensor ``placement``, ``mesh`` and ``local`` (the shape of the local shard, which all numbers are of);
    ``min``, ``max``, ``mean``, ``norm`` of the numbers (of complex ones their magnitudes), ``nan`` and ``inf`` counts,
    ``count`` of elements, ``seen`` of them, ``isPartial`` when the time was over first; ``value`` of a single element;
    ``note`` when there is more to say; ``text``, the line of :func:`text`. What is not known is null. NaN and
    infinities appear as counts only.
    """
    found = describe(value)
    if found is None:
        return {}
    statistics = _statistics(found, seconds, with_norm=True)
    facts: dict[str, Any] = {"kind": found.kind, "shape": None, "dtype": None, "device": None, **found.facts}
    facts |= dict.fromkeys(("min", "max", "mean", "norm", "nan", "inf"))
    facts |= {"count": _count(found), "seen": 0, "isPartial": False}
    if statistics is not None:
        facts |= statistics.facts()
        facts["norm"] = math.sqrt(statistics.squares) if statistics.finite else None
        if statistics.size == 1:
            facts["value"] = _as_json(statistics.first[0])
    return {**facts, "note": found.note or None, "text": line_of(found, statistics)}


def text(value: Any, seconds: float = SECONDS) -> str:
    """One line such as ``Tensor 4096×4096 bf16 cuda:3 · min −1.2 max 3.4 mean 0.01 · NaN 0 Inf 0``.

    Empty when the value is nothing of the kind. Bounded as :func:`summary`.
    """
    found = describe(value)
    if found is None:
        return ""
    return line_of(found, _statistics(found, seconds))


def digest(value: Any, seconds: float = _DIGEST_SECONDS) -> str:
    """``algorithm:hex`` of a tensor's or array's values; of a DTensor, of the local shard.

    Empty when there are no values to read (:func:`summary` says why in ``note``) or the time was not enough.
    """
    found = describe(value)
    return "" if found is None else _read(found, seconds, digest_of) or ""


def values(tensor: Any, seconds: float = SECONDS) -> list[Any]:
    """The elements of a short plain tensor as Python numbers. Raises ``RuntimeError`` when they cannot be had."""
    numbers: list[Any] = read(tensor, lambda array, _until: array.tolist(), seconds)
    return numbers


def read(value: Any, work: Callable[[Any, float], Any], seconds: float = SECONDS) -> Any:
    """What ``work(array, until)`` makes of a value's plain array. Raises ``RuntimeError`` when it cannot be had."""
    found = describe(value)
    if found is not None:
        result = _read(found, seconds, work)
        if result is not None:
            return result
    raise RuntimeError(found.note if found is not None else "no tensor")


def _as_json(value: Any) -> Any:
    """A number as JSON has it: NaN and infinities by name, a complex one as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    return str(value) if isinstance(value, complex) else value


def _count(found: Described) -> int | None:
    shape = found.facts.get("shape")
    return math.prod(shape) if shape is not None and all(type(size) is int for size in shape) else None


# --- reading, on a thread of its own --------------------------------------------------------------------------

_stuck: dict[str, threading.Thread] = {}


def _statistics(found: Described, seconds: float, *, with_norm: bool = False) -> Statistics | None:
    result: Statistics | None = _read(found, seconds, partial(measure, with_norm=with_norm))
    return result


def _read(found: Described, seconds: float, work: Callable[[Any, float], Any]) -> Any:
    """What ``work(array, until)`` makes of the value's plain array; ``None`` with a note when there is none."""
    if found.source is None:
        return None
    device = str(found.facts.get("device") or "cpu")
    until = time.monotonic() + seconds
    results: list[Any] = []
    try:
        stream = None if device == "cpu" else _stream(found, device)
    except Exception as e:
        found.note = _why(e)
        return None
    if found.note:
        return None

    def run() -> None:
        try:
            results.append(_work_apart(found, stream, seconds, until, work))
        except Exception as e:
            found.note = _why(e)

    thread = threading.Thread(target=run, name="rankscope-tensor", daemon=True)
    hide_from_debugger(thread)
    thread.start()
    thread.join(seconds + _GRACE)
    if results:
        return results[0]
    if thread.is_alive():
        _stuck[device] = thread
        found.note = f"values not read: no answer in {seconds:g} s"
    return None


def _stream(found: Described, device: str) -> Any:
    """The stream the program works on; with a note when the device is better left alone."""
    stuck = _stuck.get(device)
    if stuck is not None and stuck.is_alive():
        found.note = "values not read: the device does not answer"
    else:
        found.note = device_streams.refusal(found.source)
    return None if found.note else device_streams.current(found.source)


def _work_apart(found: Described, stream: Any, seconds: float, until: float, work: Callable[[Any, float], Any]) -> Any:
    torch: Any = sys.modules.get("torch")
    with contextlib.ExitStack() as stack:
        if torch is not None:
            stack.enter_context(torch.no_grad())
        if stream is not None:
            note = stack.enter_context(device_streams.own(found.source, stream, until - seconds / 2))
            found.note = found.note or note
        array, note = readable(found.source)
        found.note = found.note or note
        return None if array is None else work(array, until)


def _why(error: Exception) -> str:
    first = (str(error).splitlines() or [""])[0]
    return f"values not read: {type(error).__name__}: {first}"[:200]
