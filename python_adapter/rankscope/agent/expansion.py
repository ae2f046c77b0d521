"""The parts that a tensor, array, table or batch unfolds to: its attributes, then its rows, a page at a time.

Nothing is copied but the numbers of the one page that is looked at, and no gradient is recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from rankscope.agent import tensors
from rankscope.tensors.kinds import Described, describe, entries_of, plain_tensor, proto_parts, readable, untouched

PAGE = 100

Contents = list[tuple[str, Any, Any]]
"""Name, value, and what follows the parent's expression: a text, a function of that expression, or ``None``."""

Rows = Callable[[int, int], Contents]
"""The rows from a position to another, each with the text that follows the whole's expression."""


class Page:
    """The rows ``start`` to ``stop`` of something, read when it is unfolded."""

    def __init__(self, rows: Rows, start: int, stop: int) -> None:
        self.start, self.stop = start, stop
        self._rows = rows

    def contents(self) -> Contents:
        """Rows, or smaller pages when there are more than a page of them."""
        return [(name, part, _instead(after)) for name, part, after in _paged(self._rows, self.start, self.stop)]


def _paged(rows: Rows, start: int, stop: int) -> Contents:
    if stop - start <= PAGE:
        return rows(start, stop)
    step = PAGE
    while step * PAGE < stop - start:
        step *= PAGE
    ends = [*range(start - start % step + step, stop, step), stop]
    starts = [start, *ends[:-1]]
    return [(f"[{a}:{b}]", Page(rows, a, b), f"[{a}:{b}]") for a, b in zip(starts, ends, strict=True)]


def _from_the_top(rows: Rows, count: int) -> Contents:
    """The first page as rows, the others as pages."""
    return rows(0, min(count, PAGE)) + (_paged(rows, PAGE, count) if count > PAGE else [])


def _instead(after: str | None) -> Callable[[str], str] | None:
    """A page is written ``x[100:200]``, its row ``x[105]``: the last brackets are replaced."""
    return None if after is None else lambda page: page[: page.rindex("[")] + after[after.rindex("[") :]


def parts(value: Any) -> Contents | None:
    """What a value unfolds to; ``None`` when it is nothing that is shown in its own way."""
    found = describe(value)
    if found is None:
        return None
    if found.kind == "tensor":
        return _tensor(value, found)
    if found.kind == "ndarray":
        return _ndarray(value)
    if found.kind == "dataframe":
        return _dataframe(value)
    if found.kind == "series":
        return _series(value)
    entries = entries_of(value)
    if entries is None:
        return [(name, part, f".{name}") for name, part in (proto_parts(value) or {}).items()]
    shape = found.facts["shape"]
    sized: Contents = [] if shape is None else [("batch_size", tuple(shape), ".batch_size")]
    return sized + [(name, part, name if name.startswith("[") else f"[{name!r}]") for name, part in entries.items()]


# --- tensors ----------------------------------------------------------------------------------------------------


def _tensor(value: Any, found: Described) -> Contents:
    torch: Any = sys.modules["torch"]
    with untouched(torch):
        made = _attributes(torch, value)
        if "mesh" in found.facts:
            local, spec = (object.__getattribute__(value, name) for name in ("_local_tensor", "_spec"))
            shard: Contents = [
                ("placements", spec.placements, ".placements"),
                ("device_mesh", spec.mesh, ".device_mesh"),
                ("local shard", local, "._local_tensor"),
            ]
            return made + shard
        if found.source is None:
            return made
        plain = plain_tensor(torch, found.source)
        if plain.layout is not torch.strided:
            return made + _stored(torch, plain)
        made = [part for part in made if part[0] != "layout"]
        if plain.dim() == 0 or plain.is_quantized or readable(plain)[0] is None:
            return made

    def rows(start: int, stop: int) -> Contents:
        with untouched(torch):
            if plain.dim() == 1:
                numbers = tensors.values(plain[start:stop])
                return [(f"[{at}]", number, f"[{at}]") for at, number in enumerate(numbers, start)]
            return [(f"[{at}]", plain[at], f"[{at}]") for at in range(start, stop)]

    return made + _from_the_top(rows, len(plain))


def _attributes(torch: Any, value: Any) -> Contents:
    tensor = torch.Tensor
    found: Contents = []
    for name in ("shape", "dtype", "device", "layout", "requires_grad", "grad_fn"):
        try:
            found.append((name, getattr(tensor, name).__get__(value), f".{name}"))
        except Exception as e:
            found.append((name, f"<{type(e).__name__}>", None))
    if tensor.is_leaf.__get__(value) or tensor.retains_grad.__get__(value):  # torch warns of any other
        found.append(("grad", tensor.grad.__get__(value), ".grad"))
    return found


def _stored(torch: Any, plain: Any) -> Contents:
    """What a sparse tensor holds."""
    if plain.layout is torch.sparse_coo:
        return [("indices", plain._indices(), "._indices()"), ("values", plain._values(), "._values()")]
    names = [
        name
        for name in ("crow_indices", "ccol_indices", "col_indices", "row_indices", "values")
        if hasattr(plain, name)
    ]
    found: Contents = []
    for name in names:
        try:
            found.append((name, getattr(plain, name)(), f".{name}()"))
        except RuntimeError:  # of the other orientation
            continue
    return found


# --- arrays and tables ------------------------------------------------------------------------------------------


def _ndarray(value: Any) -> Contents:
    numpy: Any = sys.modules["numpy"]
    plain = numpy.ndarray.view(value, numpy.ndarray)
    made: Contents = [("shape", plain.shape, ".shape"), ("dtype", plain.dtype, ".dtype")]
    if plain.ndim == 0:
        return [*made, ("[()]", plain[()], "[()]")]

    def rows(start: int, stop: int) -> Contents:
        items = plain[start:stop]
        if plain.ndim == 1 and plain.dtype.names is None:
            items = items.tolist()
        return [(f"[{at}]", item, f"[{at}]") for at, item in enumerate(items, start)]

    return made + _from_the_top(rows, len(plain))


def _dataframe(value: Any) -> Contents:
    frame: Any = sys.modules["pandas"].DataFrame
    located = frame.iloc.__get__(value)
    count, width = frame.shape.__get__(value)
    labels = frame.columns.__get__(value)

    def columns(start: int, stop: int) -> Contents:
        return [
            (_label(labels[at]), located[:, at], f"[{labels[at]!r}]" if type(labels[at]) in {str, int} else None)
            for at in range(start, stop)
        ]

    def rows(start: int, stop: int) -> Contents:
        return [(f"[{at}]", located[at], f".iloc[{at}]") for at in range(start, stop)]

    made: Contents = [("shape", (count, width), ".shape"), *columns(0, min(width, PAGE))]
    if width > PAGE:
        made.append(("more columns", Page(columns, PAGE, width), None))
    return [*made, ("rows", Page(rows, 0, count), f".iloc[0:{count}]")]


def _series(value: Any) -> Contents:
    series: Any = sys.modules["pandas"].Series
    located, index = series.iloc.__get__(value), series.index.__get__(value)
    is_plain = type(index).__name__ == "RangeIndex"

    def rows(start: int, stop: int) -> Contents:
        items = located[start:stop].tolist()
        names = [f"[{at}]" if is_plain else f"[{at}] {_label(index[at])}" for at in range(start, stop)]
        return [(name, item, f".iloc[{at}]") for at, name, item in zip(range(start, stop), names, items, strict=True)]

    made: Contents = [("dtype", series.dtype.__get__(value), ".dtype"), ("name", series.name.__get__(value), ".name")]
    return made + _from_the_top(rows, int(series.size.__get__(value)))


def _label(label: Any) -> str:
    return str(label)[:60] if type(label) in {str, int, float, bool} else f"<{type(label).__name__}>"
