"""The largest difference between this process's tensor and another's, a chunk at a time.

One process reads chunks of its tensor (``chunk``), the hub carries each to the others, which compare it with their own
(``delta``). On the wire an element is a float32, or a float64 where that would lose digits. Of a DTensor it is the
local shard. Both questions are answered by a thread of their own: a device may take its time.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from rankscope.agent import agent as agents
from rankscope.agent import tensors
from rankscope.agent.debugger import hide_from_debugger
from rankscope.tensors.kinds import describe
from rankscope.wire import messages as m

MAX_KEPT = 4
_SECONDS = 5.0
_kept: OrderedDict[str, _Flat] = OrderedDict()
_lock = threading.Lock()
_EXACT_IN_FLOAT32 = ("float32", "float16", "bfloat16", "bool", "uint8", "int8", "int16", "complex64", "complex32")

Difference = dict[str, Any]


class NotComparableError(Exception):
    """A tensor that cannot be read element by element."""


def keep(word: str, value: Any) -> None:
    """Hold a tensor or array under a word, until it is released, the hub goes, or :data:`MAX_KEPT` came later.

    One that cannot be read element by element is not held.
    """
    try:
        flat = _Flat(value)
    except NotComparableError:
        return
    agent = agents.current
    with _lock:
        _kept[word] = flat
        while len(_kept) > MAX_KEPT:
            _kept.popitem(last=False)
    if agent is not None and "delta" not in agent.answers:
        agent.answers |= {"chunk": _on_thread(_chunk), "delta": _on_thread(_delta), "release": _release}
        agent.released_hooks.append(_kept.clear)


def _release(arguments: dict[str, Any]) -> dict[str, Any]:
    with _lock:
        _kept.pop(str(arguments.get("keep")), None)
    return {}


def _on_thread(work: Callable[[_Flat, dict[str, Any]], dict[str, Any]]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """An answer of the agent's that comes later, under the number ``reply``."""

    def begin(arguments: dict[str, Any]) -> dict[str, Any]:
        with _lock:
            flat = _kept.get(str(arguments["keep"]))
        if flat is None:
            raise NotComparableError("it has no elements that can be compared one by one")

        def run() -> None:
            try:
                reply = m.Reply(ask=arguments["reply"], body=work(flat, arguments))
            except Exception as e:
                reply = m.Reply(ask=arguments["reply"], error=f"{type(e).__name__}: {e}"[:500])
            agent = agents.current
            if agent is not None:
                agent.send(reply)

        thread = threading.Thread(target=run, name="rankscope-delta", daemon=True)
        hide_from_debugger(thread)
        thread.start()
        return {}

    return begin


def _chunk(flat: _Flat, arguments: dict[str, Any]) -> dict[str, Any]:
    numbers = flat.read(int(arguments["start"]), int(arguments["count"]))
    return {"data": flat.to_bytes(numbers), "isDouble": flat.is_double}


def _delta(flat: _Flat, arguments: dict[str, Any]) -> dict[str, Any]:
    theirs = flat.from_bytes(arguments["data"], is_double=bool(arguments["isDouble"]))
    return difference(flat.library, flat.read(int(arguments["start"]), len(theirs)), theirs)


def difference(library: Any, mine: Any, theirs: Any) -> Difference:
    """Of two flat arrays of ``library`` (torch or numpy): ``max`` of |Δ|, its place ``at``, their ``sum``, and ``nan``.

    Equal elements, Inf and NaN too, differ by 0; ``nan`` counts places where only one is NaN, which ``max`` and
    ``sum`` leave out. ``at`` is the first of the NaN places, if there are any.
    """
    double = library.float64
    mine, theirs = (a.to(double) if hasattr(a, "to") else a.astype(double) for a in (mine, theirs))
    with library.errstate(all="ignore") if hasattr(library, "errstate") else library.no_grad():
        gap = abs(mine - theirs)
    gap[(mine == theirs) | (library.isnan(mine) & library.isnan(theirs))] = 0.0
    is_nan = library.isnan(gap)
    nan = int(is_nan.sum())
    at = int((is_nan * 1.0 if nan else gap).argmax())
    gap[is_nan] = 0.0
    return {"max": float(gap.max()), "at": at, "sum": float(gap.sum()), "nan": nan}


class _Flat:
    """A tensor or array read as one row of float32 or float64, without a copy of the whole."""

    def __init__(self, value: Any) -> None:
        found = describe(value)
        if found is None or found.source is None:
            raise NotComparableError("it has no elements that are numbers")
        self._value = value
        self.is_torch = type(found.source).__module__ != "numpy"
        self.library: Any = sys.modules["torch" if self.is_torch else "numpy"]
        self.is_double = str(found.facts.get("dtype")) not in _EXACT_IN_FLOAT32

    def read(self, start: int, count: int) -> Any:
        """So many elements from there, in CPU memory, as float32 or float64; of a complex one both parts."""

        def part(array: Any, _until: float) -> Any:
            wide = self.library.float64 if self.is_double else self.library.float32
            if not self.is_torch:
                array = array.view(array.real.dtype)
                return array.flat[start : start + count].astype(wide)
            array = self.library.view_as_real(array) if array.is_complex() else array
            if array.is_contiguous():
                return array.view(-1)[start : start + count].to("cpu", wide)
            places = self.library.arange(start, min(start + count, array.numel()), device=array.device)
            return self.library.take(array, places).to("cpu", wide)

        return tensors.read(self._value, part, _SECONDS)

    def to_bytes(self, numbers: Any) -> bytes:
        """The memory of what :meth:`read` gave."""
        if not self.is_torch:
            return bytes(numbers.tobytes())
        return ctypes.string_at(numbers.data_ptr(), numbers.numel() * numbers.element_size())

    def from_bytes(self, data: bytes, *, is_double: bool) -> Any:
        """What :meth:`to_bytes` of another process gave."""
        kind = self.library.float64 if is_double else self.library.float32
        return self.library.frombuffer(bytearray(data), dtype=kind)
