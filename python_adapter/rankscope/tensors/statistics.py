"""Statistics of an array in about two reads of it, on the device where it lies.

Minimum, maximum and sum are taken piece by piece, each small enough for a CPU's cache. NaN and Inf show in the sum
and are counted only in pieces where they do.
"""

from __future__ import annotations

import math
import sys
import time
from typing import Any

from rankscope.tensors.pieces import by_memory, pieces, size_of

_CPU_PIECE = 1 << 19
_DEVICE_PIECE = 1 << 22
_EXACT = 1 << 62
_FIRST = 6


class Statistics:
    """Minimum, maximum and mean of the finite elements, NaN and Inf counts; of complex numbers, of their magnitude.

    ``first`` are up to six elements from the beginning.
    """

    def __init__(self) -> None:
        self.low, self.high = math.inf, -math.inf
        self.total = self.squares = 0.0
        self.nan = self.inf = self.seen = 0
        self.size = 0
        self.first: list[Any] = []

    @property
    def is_partial(self) -> bool:
        """Whether the time was over before the end."""
        return self.seen < self.size

    @property
    def finite(self) -> int:
        """How many of the elements seen are numbers."""
        return self.seen - self.nan - self.inf

    @property
    def mean(self) -> float | None:
        """The mean of the numbers seen; ``None`` when there are none."""
        return self.total / self.finite if self.finite else None

    def facts(self) -> dict[str, Any]:
        """As JSON: ``min``, ``max``, ``mean`` (null without a number), ``nan``, ``inf``, ``seen``, ``isPartial``."""
        low, high = (self.low, self.high) if self.finite else (None, None)
        return {
            "min": low,
            "max": high,
            "mean": self.mean,
            "nan": self.nan,
            "inf": self.inf,
            "seen": self.seen,
            "isPartial": self.is_partial,
        }


def measure(array: Any, until: float, *, with_norm: bool = False) -> Statistics:
    """Read a plain tensor or numeric ndarray until it ends or the time ``until`` (monotonic) is over.

    At least one piece is read. ``squares`` is summed up only ``with_norm``. Whoever calls sees to it that nothing is
    recorded (:func:`torch.no_grad`), and chooses the stream.
    """
    found = Statistics()
    found.size = size_of(array)
    if found.size == 0:
        return found
    found.first = next(pieces(array, _FIRST)).tolist()
    array, times = by_memory(array)
    reader = _numpy_piece if type(array).__module__ == "numpy" else _torch_piece
    is_cpu = reader is _numpy_piece or array.device.type == "cpu"
    for piece in pieces(array, _CPU_PIECE if is_cpu else _DEVICE_PIECE):
        reader(found, piece, times, with_norm)
        if time.monotonic() > until:
            break
    return found


def _torch_piece(found: Statistics, piece: Any, times: int, with_norm: bool) -> None:
    torch: Any = sys.modules["torch"]
    count, piece = len(piece), _as_numbers(torch, piece)
    nan = bad = 0
    if not piece.is_floating_point():
        low, high = (end.item() for end in piece.aminmax())
        is_exact = max(abs(low), abs(high)) * count < _EXACT
        total = piece.sum(dtype=None if is_exact else torch.float64).item()
    elif math.isfinite(total := piece.sum().item()):
        low, high = (end.item() for end in piece.aminmax())
    else:
        low, high, total, nan, bad = _torch_careful(torch, found, piece)
        piece = piece.nan_to_num(0.0, 0.0, 0.0) if with_norm else piece
    squares = 0.0
    if with_norm:
        real = piece if piece.is_floating_point() else piece.double()
        squares = real.dot(real).item()
        squares = squares if math.isfinite(squares) else real.double().dot(real.double()).item()
    _add(found, (low, high, total, squares), count, nan, bad - nan, times)


def _torch_careful(torch: Any, found: Statistics, piece: Any) -> tuple[float, float, float, int, int]:
    """Minimum, maximum and sum without NaN and Inf, how many NaN there are, and how many of both."""
    unequal = torch.empty_like(piece)  # a result of its own type is compared seven times as fast as a bool

    def count_unequal(other: Any) -> int:
        return int(torch.ne(piece, other, out=unequal).sum().item())

    nan = count_unequal(piece)
    fill = min(max(0.0, found.low), found.high) if found.finite else None  # a number within the range so far
    if fill is None:
        fill = piece.nan_to_num(math.inf, math.inf, math.inf).amin().item()
        if not math.isfinite(fill):
            return math.inf, -math.inf, 0.0, nan, len(piece)
    good = piece.nan_to_num(fill, fill, fill)
    bad = count_unequal(good)
    low, high = (end.item() for end in good.aminmax())
    total = good.sum().item()
    if not math.isfinite(total):
        total = good.sum(dtype=torch.float64).item()
    return low, high, total - fill * bad, nan, bad


def _as_numbers(torch: Any, piece: Any) -> Any:
    """A piece of any dtype as one that minimum, maximum and sum are defined for."""
    dtype = piece.dtype
    if dtype.is_complex:
        return piece.abs().float() if piece.element_size() < 8 else piece.abs()
    if dtype.is_floating_point:
        return piece.float() if piece.element_size() < 4 else piece
    if dtype is torch.bool:
        return piece.view(torch.uint8)
    if str(dtype) == "torch.uint64":
        return piece.double()
    return piece.long() if str(dtype) in {"torch.uint16", "torch.uint32"} else piece


def _numpy_piece(found: Statistics, piece: Any, times: int, with_norm: bool) -> None:
    numpy: Any = sys.modules["numpy"]
    count = len(piece)
    if piece.dtype.kind == "c":
        piece = numpy.abs(piece)
    elif piece.dtype.kind == "b":
        piece = piece.view(numpy.uint8)
    elif piece.dtype.kind == "f" and piece.dtype.itemsize < 4:
        piece = piece.astype(numpy.float32)
    nan = inf = 0
    with numpy.errstate(all="ignore"):
        total = piece.sum(dtype=None if piece.dtype.kind == "f" else numpy.float64)
        if not math.isfinite(total):
            is_finite = numpy.isfinite(piece)
            nan = int(numpy.count_nonzero(numpy.isnan(piece)))
            inf = count - nan - int(numpy.count_nonzero(is_finite))
            piece = piece[is_finite]
            total = piece.sum(dtype=numpy.float64)
        low, high = (piece.min().item(), piece.max().item()) if len(piece) else (math.inf, -math.inf)
        squares = 0.0
        if with_norm and len(piece):
            real = piece.astype(numpy.float64)
            squares = float(real.dot(real))
    _add(found, (low, high, float(total), squares), count, nan, inf, times)


def _add(
    found: Statistics, numbers: tuple[float, float, float, float], count: int, nan: int, inf: int, times: int
) -> None:
    low, high, total, squares = numbers
    found.low, found.high = min(found.low, low), max(found.high, high)
    found.total += total * times
    found.squares += squares * times
    found.nan += nan * times
    found.inf += inf * times
    found.seen += count * times
