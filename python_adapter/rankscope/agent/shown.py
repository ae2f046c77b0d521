"""A value as it is compared over ranks: its kind, one bounded line, and a number or a tensor's statistics with digest.

Texts are the same wherever the value is the same: no address stands in them, and what is cut carries a digest of the
whole.
"""

from __future__ import annotations

import hashlib
import math
import re
import reprlib
import sys
from typing import Any

from rankscope.agent import tensors
from rankscope.postmortem.values import type_name

MAX_TEXT = 4_000
_MAX_TYPE = 200
_MAX_INT_BITS = 4_096
_ADDRESS = re.compile(r" (?:at|object at) 0x[0-9a-fA-F]+")
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_DIGITS = {"float32": 9, "float16": 5, "bfloat16": 4}

Answer = dict[str, Any]


def answer(value: Any) -> Answer:
    """``kind`` (``number``, ``tensor`` or ``text``), ``text``, ``type``, and ``value`` or ``tensor`` (with ``digest``).

    A tensor of one element without dimensions is a number. Raises what the value's own ``__repr__`` raises.
    """
    told: Answer = {"kind": "text", "type": type_name(type(value))[:_MAX_TYPE]}
    number = _number(value)
    if number is not None:
        return {**told, "kind": "number", "text": _number_text(value), "value": number}
    summary = tensors.summary(value)
    if not summary:
        return {**told, "text": text_of(value)}
    told |= {"text": summary.pop("text"), "tensor": {**summary, "digest": tensors.digest(value)}}
    scalar = _scalar(summary)
    if scalar is None:
        return {**told, "kind": "tensor"}
    digits = _DIGITS.get(str(summary.get("dtype")))
    text = format(scalar, f".{digits}g") if digits and isinstance(scalar, float) else repr(scalar)
    return {**told, "kind": "number", "text": text, "value": scalar}


def failure(error: BaseException) -> Answer:
    """An exception as an answer."""
    kind = type_name(type(error)).rpartition(".")[2]
    try:
        said = _clipped(str(error))
    except Exception:  # the person's own code
        said = "(its __str__ failed)"
    text = _ADDRESS.sub("", f"{kind}: {said}".removesuffix(": "))
    return {"kind": "error", "text": text, "type": kind, "error": text}


def text_of(value: Any) -> str:
    """One bounded line. Containers are walked within bounds; of others their own ``__repr__`` is asked."""
    if type(value) is str or type(value) is bytes:
        return _clipped(repr(value[:MAX_TEXT]), value)
    return _clipped(_ADDRESS.sub("", _Walk().repr(value)))


class _Walk(reprlib.Repr):
    """Containers in one line: 30 parts, 4 levels, and tensors by their own text."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = 30
        self.maxstring = self.maxother = 200
        self.maxlong = 80

    def repr_instance(self, x: Any, level: int) -> str:
        """Whatever is no builtin container."""
        del level
        return tensors.text(x) or repr(x)[:MAX_TEXT]

    repr_array = repr_instance  # reprlib goes by names: another library's `array` too


def _number(value: Any) -> float | int | None:
    """Of ``int``, ``float`` and numpy's scalars."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.integer, numpy.floating)):
        value = value.item()
    if type(value) is float:
        return value
    return value if type(value) is int and value.bit_length() <= _MAX_INT_BITS and _is_finite(value) else None


def _is_finite(value: int) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _number_text(value: Any) -> str:
    return repr(value) if type(value) in (int, float) else str(value)


def _scalar(summary: Answer) -> float | int | None:
    """The number that a tensor without dimensions is."""
    found = summary.get("value")
    if summary.get("shape") != [] or found is None:
        return None
    found = _NOT_FINITE.get(found, found)
    return found if type(found) in (int, float) else None


def _clipped(text: str, whole: str | bytes | None = None) -> str:
    """At most :data:`MAX_TEXT`; what was longer says how long, with a digest that tells two such apart."""
    full = text if whole is None else whole
    if len(full) <= MAX_TEXT:
        return text
    raw = full.encode(errors="surrogatepass") if isinstance(full, str) else full
    return f"{text[: MAX_TEXT - 100]}… ({len(full):,} in all, {hashlib.blake2b(raw, digest_size=8).hexdigest()})"
