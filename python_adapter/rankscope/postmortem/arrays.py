"""Arrays and tensors in one line and a few facts, without moving them and within bounds.

Only CPU memory is measured: after a failure a device may never answer again. Of a DTensor
only the local shard is read; nothing here communicates. NaN and Inf are counted only in
chunks whose sum shows them, so a healthy array is read about twice.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass, field
from typing import Any

_CHUNK = 1 << 22
_SHOWN = 6
_TIMES = "\u00d7"
_MRO: Any = type.__dict__["__mro__"]

Facts = dict[str, str]


@dataclass
class Array:
    """An array as it is described at once; ``data`` is the flat memory that :func:`measure` reads, if it may."""

    line: str
    facts: Facts = field(default_factory=dict)
    data: Any = None

    @property
    def size(self) -> int:
        """How many elements can be measured."""
        return 0 if self.data is None else len(self.data)


def describe(value: Any) -> Array | None:
    """Shape, dtype and place of a torch tensor or numpy array; ``None`` when it is neither."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    bases = _MRO.__get__(type(value))
    if torch is not None and getattr(torch, "Tensor", None) in bases:
        return _tensor(torch, value)
    if numpy is not None and getattr(numpy, "ndarray", None) in bases:
        return _ndarray(numpy, value)
    return None


def measure(array: Array, until: float) -> None:
    """Add min, max, mean, NaN and Inf counts to an array's facts, reading until the time ``until`` (monotonic)."""
    numbers = _Numbers()
    while numbers.seen < array.size and (numbers.seen == 0 or time.monotonic() < until):
        numbers.add(array.data[numbers.seen : numbers.seen + _CHUNK])
    facts = numbers.facts(array.size)
    array.facts |= facts
    if "min" in facts:
        array.line += f" · min {facts['min']} max {facts['max']} mean {facts['mean']}"
    array.line += f" · NaN {facts['NaN']} Inf {facts['Inf']}"
    if "measured" in facts:
        array.line += f" (of the {facts['measured']})"
    array.data = None


def _tensor(torch: Any, tensor: Any) -> Array:
    shape = [int(size) for size in torch.Tensor.size(tensor)]
    device = str(torch.Tensor.device.__get__(tensor))
    dtype = str(torch.Tensor.dtype.__get__(tensor)).removeprefix("torch.")
    facts = {"shape": str(shape), "dtype": dtype, "device": device}
    if torch.Tensor.requires_grad.__get__(tensor):
        facts["requires_grad"] = "True"
    local = _local_shard(tensor, facts)
    line = f"Tensor {_shape_text(shape)} {dtype} {device}"
    if local is not tensor:
        line += f" {facts['placements']}"
    is_plain = type(local) in (torch.Tensor, torch.nn.Parameter) and local.layout is torch.strided
    if not is_plain or local.device.type != "cpu" or local.is_quantized or local.numel() == 0:
        return Array(line, facts)
    with torch.no_grad():
        flat = local.detach()
        flat = flat.view(-1) if flat.is_contiguous() else flat.reshape(-1) if flat.numel() <= _CHUNK else flat[:0]
        if flat.numel() == 0:
            return Array(line, facts)  # flattening it would copy it
        facts["values"] = _few(flat[:_SHOWN].tolist(), local.numel())
        if flat.dtype is torch.bool:
            return Array(line, facts)
        return Array(line, facts, torch.view_as_real(flat).view(-1) if flat.is_complex() else flat)


def _local_shard(tensor: Any, facts: Facts) -> Any:
    fields = type(tensor).__dict__
    if "_local_tensor" not in fields and "_local_tensor" not in getattr(tensor, "__dict__", ()):
        return tensor
    spec = getattr(tensor, "_spec", None)
    facts["placements"] = str(getattr(spec, "placements", "?"))
    facts["mesh"] = str(getattr(spec, "mesh", "?"))[:200]
    facts["values of"] = "the local shard"
    return tensor._local_tensor


def _ndarray(numpy: Any, array: Any) -> Array:
    plain = numpy.ndarray.view(array, numpy.ndarray)
    facts = {"shape": str(list(plain.shape)), "dtype": str(plain.dtype)}
    line = f"ndarray {_shape_text(plain.shape)} {plain.dtype}"
    if plain.size == 0 or plain.dtype.kind not in "iufb":
        return Array(line, facts)
    if not plain.flags.c_contiguous and plain.size > _CHUNK:
        return Array(line, facts)  # flattening it would copy it
    flat = plain.reshape(-1)
    facts["values"] = _few(flat[:_SHOWN].tolist(), plain.size)
    return Array(line, facts, None if plain.dtype.kind == "b" else flat)


class _Numbers:
    """Statistics that grow chunk by chunk."""

    def __init__(self) -> None:
        self.low, self.high, self.total = math.inf, -math.inf, 0.0
        self.nan = self.inf = self.seen = 0

    def add(self, chunk: Any) -> None:
        self.seen += len(chunk)
        low, high, total = _extremes(chunk)
        if not math.isfinite(total):
            chunk, nan, inf = _finite(chunk)
            self.nan += nan
            self.inf += inf
            if len(chunk) == 0:
                return
            low, high, total = _extremes(chunk)
        self.low, self.high, self.total = min(self.low, low), max(self.high, high), self.total + total

    def facts(self, size: int) -> Facts:
        finite = self.seen - self.nan - self.inf
        facts = {"NaN": str(self.nan), "Inf": str(self.inf)}
        if finite > 0:
            facts |= {"min": f"{self.low:.6g}", "max": f"{self.high:.6g}", "mean": f"{self.total / finite:.6g}"}
        if self.seen < size:
            facts["measured"] = f"first {self.seen:,} of {size:,}"
        return facts


def _extremes(chunk: Any) -> tuple[float, float, float]:
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(chunk, torch.Tensor):
        return float(chunk.min()), float(chunk.max()), float(chunk.sum(dtype="float64"))
    with torch.no_grad():
        if chunk.is_floating_point() and chunk.element_size() < 4:
            chunk = chunk.float()
        low, high = chunk.aminmax()
        return float(low), float(high), float(chunk.sum(dtype=torch.float64))


def _finite(chunk: Any) -> tuple[Any, int, int]:
    """The finite part of a chunk, and how many NaN and Inf it held."""
    torch: Any = sys.modules.get("torch")
    library: Any = torch if torch is not None and isinstance(chunk, torch.Tensor) else sys.modules["numpy"]
    is_finite = library.isfinite(chunk)
    nan = int(library.isnan(chunk).sum())
    return chunk[is_finite], nan, len(chunk) - nan - int(is_finite.sum())


def _shape_text(shape: Any) -> str:
    return _TIMES.join(map(str, shape)) if len(shape) else "scalar"


def _few(values: list[Any], count: int) -> str:
    texts = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in values]
    return ", ".join(texts) + (", …" if count > len(texts) else "")
