"""What is given to a check, as named entries whose memory can be read: no copy, no collective, nobody's code run."""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rankscope.checks import in_flight, replicas
from rankscope.errors import UserError
from rankscope.tensors.kinds import describe, entries_of, plain_tensor, proto_parts, readable, untouched

SHARD = "shard"
_MAX_DEPTH = 64
_MAX_OBJECTS = 1 << 20
_SHORT = 80
_PLAIN = (int, float, complex, bool, str, bytes, type(None))


@dataclass
class Entry:
    """One thing to compare.

    ``kind`` (``tensor``, ``array``, ``value``, ``skipped``), ``shape`` (global), ``dtype`` and ``extra`` must be equal
    on all ranks; a ``shard`` that is an ordinary tensor may have any shape, and be missing. ``peers`` names the ranks
    that hold the same shard: empty for all of the group, see :mod:`rankscope.checks.replicas`. ``parts`` are plain
    tensors. ``note`` says why nothing of it is read.
    """

    name: str
    kind: str
    shape: tuple[int, ...] = ()
    dtype: str = ""
    extra: str = ""
    peers: str = ""
    parts: list[Any] = field(default_factory=list)
    note: str = ""
    offset: tuple[int, ...] = ()  # where the local shard begins in the whole
    local: tuple[int, ...] | None = None  # its shape, where it is not the whole

    @property
    def structure(self) -> tuple[Any, ...]:
        """What must be equal everywhere."""
        return self.name, self.kind, self.shape, self.dtype, self.extra

    @property
    def is_read(self) -> bool:
        """Whether its values are compared."""
        return not self.note

    @property
    def bytes(self) -> int:
        """How much memory it holds."""
        return sum(part.numel() * part.element_size() for part in self.parts)


def entries(given: Any) -> list[Entry]:
    """All that is to be compared in ``given``, sorted by name.

    A tensor, array, module, optimizer, TensorDict, DataProto, or mappings and sequences of these and of plain values.
    Raises :class:`UserError` ``not-tensors`` when there is nothing of the kind.
    """
    torch: Any = sys.modules["torch"]
    if isinstance(given, _PLAIN):
        raise _not_tensors(given)
    with untouched(torch):
        found = [_entry(torch, name, value) for name, value in named(given)]
    if len(found) == 1 and found[0].kind == "skipped" and not found[0].name:
        raise _not_tensors(given)
    taken: dict[str, int] = {}
    for entry in found:
        entry.name = entry.name or "tensor"
        count = taken[entry.name] = taken.get(entry.name, 0) + 1
        if count > 1:
            entry.name += f"#{count}"
    return sorted(found, key=lambda entry: entry.name)


def _not_tensors(given: Any) -> UserError:
    hint = "Give tensors, arrays, a module, an optimizer, or a mapping of them."
    return UserError("not-tensors", f"There is nothing to compare in a {type(given).__name__}.", hint)


# --- names ------------------------------------------------------------------------------------------------------


def named(given: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Every leaf with its name: keys joined by dots."""
    if depth > _MAX_DEPTH:
        raise UserError("not-tensors", f"'{name[:60]}…' is nested more than {_MAX_DEPTH} deep.", "Does it hold itself?")
    if replicas.is_tensor(given) or isinstance(given, _PLAIN):
        yield name, given
        return
    torch: Any = sys.modules["torch"]
    inside: Iterator[tuple[Any, Any]] | None = None
    if isinstance(given, torch.nn.Module):
        inside = _of_module(given)
    elif isinstance(given, torch.optim.Optimizer):
        inside = _of_optimizer(given)
    elif (held := entries_of(given)) is not None:
        inside = iter(held.items())
    elif (parts := proto_parts(given)) is not None:
        inside = ((key, part) for key, part in parts.items() if part is not None)
    elif isinstance(given, Mapping):
        inside = iter(given.items())
    elif isinstance(given, (list, tuple)) and not hasattr(given, "_typed_storage"):
        inside = iter(enumerate(given))
    if inside is None:
        yield name, given
        return
    for key, value in inside:
        text = key if isinstance(key, str) else ".".join(map(str, key)) if isinstance(key, tuple) else str(key)
        yield from named(value, f"{name}.{text}" if name else text, depth + 1)


def _of_module(module: Any) -> Iterator[tuple[str, Any]]:
    replicas.learn_module(module)
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)


def _of_optimizer(optimizer: Any) -> Iterator[tuple[str, Any]]:
    number = 0
    for at, group in enumerate(optimizer.param_groups):
        for parameter in group["params"]:
            state = optimizer.state.get(parameter, {})
            replicas.inherit(parameter, state.values())
            yield f"state.{number}", state
            number += 1
        yield f"param_groups.{at}", {key: value for key, value in group.items() if key != "params"}


# --- entries ----------------------------------------------------------------------------------------------------


def _entry(torch: Any, name: str, value: Any) -> Entry:
    if isinstance(value, _PLAIN):
        return _value(torch, name, value)
    kind = type(value)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        entry = _plain(torch, name, value)
        if entry is not None:
            return entry
    try:
        if isinstance(value, torch.Tensor):
            return _tensor(torch, name, value)
        if _is_array(value):
            return _array(torch, name, value)
    except Exception as e:
        return Entry(name, "skipped", note=f"cannot be read ({type(e).__name__}: {e})"[:200])
    return Entry(name, "skipped", note=f"not a tensor ({kind.__name__})")


def _value(torch: Any, name: str, value: Any) -> Entry:
    """A number is compared as a tensor is, anything else by its text."""
    entry = Entry(name, "value", dtype=type(value).__name__)
    if isinstance(value, float) or (isinstance(value, int) and -(2**63) <= value < 2**63):
        entry.parts = [torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else torch.int64)]
    else:
        entry.extra = _brief(repr(value))
    return entry


def _brief(text: str) -> str:
    """Text of any length as a short one, which differs where the text does."""
    if len(text) <= _SHORT:
        return text
    return f"{text[:_SHORT]}… ({hashlib.blake2b(text.encode(), digest_size=8).hexdigest()})"


def _plain(torch: Any, name: str, value: Any) -> Entry | None:
    """The quick way of an ordinary parameter or buffer; ``None`` when it is something else."""
    if value.layout is not torch.strided or value.is_quantized or value.is_nested or value.device.type == "meta":
        return None
    tensor = value.detach()
    if tensor.is_conj() or tensor.is_neg():
        return None
    if tensor.untyped_storage().nbytes() == 0 and tensor.numel():
        return None
    peers = replicas.of_plain(value)
    if peers:
        return Entry(name, SHARD, (), str(tensor.dtype), "", peers, [tensor], local=tuple(tensor.shape))
    return Entry(name, "tensor", tuple(tensor.shape), str(tensor.dtype), parts=[tensor])


def _tensor(torch: Any, name: str, value: Any) -> Entry:
    found = describe(value)
    assert found is not None
    shape = tuple(found.facts.get("shape") or ())
    entry = Entry(name, "tensor", shape, f"torch.{found.facts.get('dtype')}")
    if "placement" in found.facts:
        entry.extra = f"{found.facts['placement']} on {found.facts['mesh']}"
        entry.peers, entry.offset, entry.note = replicas.of_dtensor(value)
        entry.local = tuple(found.facts.get("local") or ())
    else:
        entry.peers = replicas.of_plain(value)
        if entry.peers:
            entry.kind, entry.shape, entry.local = SHARD, (), shape
    source = found.source
    if source is None and not entry.note:
        inner = _inner(value)
        if inner is None:
            entry.note = found.note or "values cannot be read"
            return entry
        for part in inner:
            entry.parts += _parts(torch, part, entry)
        entry.extra += f" {[tuple(part.shape) for part in entry.parts]}"
    elif not entry.note:
        entry.parts = _parts(torch, source, entry)
    return entry


def _inner(value: Any) -> list[Any] | None:
    """The tensors that a wrapper is made of, by torch's own protocol; ``None`` where they cannot be read."""
    if type(value).__name__ == "AsyncCollectiveTensor":
        result = in_flight.awaited(value)
        return None if result is None else [result]
    if type(value).__name__ in {"FakeTensor", "FunctionalTensor"}:
        return None
    flatten = getattr(value, "__tensor_flatten__", None)
    if flatten is None:
        return None
    names, _ = flatten()
    return [getattr(value, each) for each in names]


def _parts(torch: Any, source: Any, entry: Entry) -> list[Any]:
    """The plain tensors whose bits are the values; what must be equal besides goes into ``extra``."""
    plain = plain_tensor(torch, source)
    layout = str(plain.layout).removeprefix("torch.")
    if plain.is_quantized:
        entry.extra += f" {plain.qscheme()}"
        per_channel = "per_channel" in str(plain.qscheme())
        steps = (plain.q_per_channel_scales(), plain.q_per_channel_zero_points()) if per_channel else ()
        step = torch.tensor([plain.q_scale(), plain.q_zero_point()], dtype=torch.float64) if not per_channel else None
        return [plain.int_repr(), *(steps if step is None else (step,))]
    if layout != "strided":
        parts = _sparse(plain, layout)
        if parts is None:
            entry.note = f"layout {layout} is not compared"
            return []
        entry.extra += f" {layout} {[tuple(part.shape) for part in parts]}"
        return parts
    plain, note = readable(plain)
    if plain is None:
        entry.note = "" if note == "empty" else note
        return []
    return [plain.resolve_conj().resolve_neg()]


def _sparse(plain: Any, layout: str) -> list[Any] | None:
    if layout == "sparse_coo":
        plain = plain if plain.is_coalesced() else plain.coalesce()
        return [plain.indices(), plain.values()]
    if layout in {"sparse_csr", "sparse_bsr"}:
        return [plain.crow_indices(), plain.col_indices(), plain.values()]
    if layout in {"sparse_csc", "sparse_bsc"}:
        return [plain.ccol_indices(), plain.row_indices(), plain.values()]
    return None


# --- arrays -----------------------------------------------------------------------------------------------------


def _is_array(value: Any) -> bool:
    numpy: Any = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def _array(torch: Any, name: str, value: Any) -> Entry:
    numpy: Any = sys.modules["numpy"]
    plain = numpy.asarray(value).view(numpy.ndarray)
    entry = Entry(name, "array", tuple(plain.shape), str(plain.dtype))
    if plain.dtype.hasobject:
        text = _objects(plain)
        entry.note = "" if text is not None else "an array of objects is not compared"
        entry.extra = _brief(text or "")
        return entry
    if any(stride < 0 for stride in plain.strides) or not plain.dtype.isnative:
        plain = numpy.ascontiguousarray(plain)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is only read, if it may not be written
            entry.parts = [torch.from_numpy(plain)]
    except TypeError:
        entry.parts = [torch.from_numpy(numpy.ascontiguousarray(plain).reshape(-1).view(numpy.uint8).copy())]
    return entry


def _objects(array: Any) -> str | None:
    """Plain values as text; ``None`` when there is anything else, or too much."""
    if array.size > _MAX_OBJECTS:
        return None
    items = array.reshape(-1).tolist()
    return repr(items) if all(map(partial(_is_plain, depth=3), items)) else None


def _is_plain(value: Any, depth: int) -> bool:
    if type(value) in _PLAIN:
        return True
    if depth and type(value) in {list, tuple}:
        return all(_is_plain(each, depth - 1) for each in value)
    return (
        bool(depth)
        and type(value) is dict
        and all(_is_plain(part, depth - 1) for pair in value.items() for part in pair)
    )
