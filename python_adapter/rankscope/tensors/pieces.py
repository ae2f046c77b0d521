"""An array cut into flat pieces, without copying more than a piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def size_of(array: Any) -> int:
    """How many elements a tensor or ndarray has."""
    return int(array.numel() if hasattr(array, "numel") else array.size)


def pieces(array: Any, size: int) -> Iterator[Any]:
    """One-dimensional parts of at most ``size`` elements in row-major order; views wherever the memory allows."""
    count = size_of(array)
    if _is_contiguous(array) or count <= size:
        flat = array.reshape(-1)
        for start in range(0, count, size):
            yield flat[start : start + size]
        return
    rows = array.shape[0]
    step = size * rows // count
    for start in range(0, rows, step or 1):
        yield from pieces(array[start : start + step] if step else array[start], size)


def by_memory(array: Any) -> tuple[Any, int]:
    """The same elements in the order of memory, and how often each of them stands in ``array`` (if expanded)."""
    times, strides = 1, [abs(stride) for stride in _strides(array)]
    for axis, (length, stride) in enumerate(zip(array.shape, strides, strict=True)):
        if stride == 0 and length > 1:
            times *= int(length)
            array = array[(slice(None),) * axis + (slice(0, 1),)]
    order = sorted(range(len(strides)), key=lambda axis: -strides[axis])
    return (array.permute(order) if hasattr(array, "permute") else array.transpose(order)), times


def _strides(array: Any) -> Any:
    return array.stride() if hasattr(array, "stride") else array.strides


def _is_contiguous(array: Any) -> bool:
    return bool(array.is_contiguous() if hasattr(array, "is_contiguous") else array.flags.c_contiguous)
