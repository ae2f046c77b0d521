"""What a value is, when it is a tensor, array, table or batch: told from its class, and none of a person's code runs.

Of a tensor subclass neither ``__torch_function__`` nor ``__torch_dispatch__`` is called, of a DTensor only the local
shard is looked at, so that nothing here communicates.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

_SHOWN_ENTRIES = 8
_MRO: Any = type.__dict__["__mro__"]
_NAME: Any = type.__dict__["__name__"]


@dataclass
class Described:
    """A value as it is known at once.

    ``head`` begins its line; ``facts`` are JSON. ``source`` is what can be read for statistics (a tensor or an array
    of numbers), ``None`` when nothing can; ``note`` then says why, unless that is plain.
    """

    kind: str
    head: str
    facts: dict[str, Any] = field(default_factory=dict)
    source: Any = None
    note: str = ""


def describe(value: Any) -> Described | None:
    """What a value is; ``None`` when it is nothing that is shown in its own way."""
    bases = _MRO.__get__(type(value))
    if _is_of("torch", "Tensor", bases):
        return _tensor(value, bases)
    if _is_of("numpy", "ndarray", bases):
        return _ndarray(value)
    if _is_of("pandas", "DataFrame", bases):
        return _dataframe(value)
    if _is_of("pandas", "Series", bases):
        return _series(value)
    entries = entries_of(value)
    if entries is not None:
        return _tensordict(value, entries)
    parts = proto_parts(value)
    return None if parts is None else _dataproto(value, parts)


def kind_of_class(cls: type) -> str:
    """``tensor``, ``ndarray``, ``dataframe``, ``series`` or ``batch``; empty when it is none (a guess for a batch)."""
    bases = _MRO.__get__(cls)
    for module, name, kind in _CLASSES:
        if _is_of(module, name, bases):
            return kind
    names = {_NAME.__get__(base) for base in bases}
    is_batch = names & {"TensorDictBase", "DataProto", "TensorClass"} or "_is_tensorclass" in cls.__dict__
    return "batch" if is_batch else ""


_CLASSES = (
    ("torch", "Tensor", "tensor"),
    ("numpy", "ndarray", "ndarray"),
    ("pandas", "DataFrame", "dataframe"),
    ("pandas", "Series", "series"),
)


def _is_of(module: str, name: str, bases: tuple[type, ...]) -> bool:
    return vars(sys.modules.get(module, object)).get(name) in bases


def shape_text(shape: Any) -> str:
    """``4096×4096``; ``scalar`` without dimensions."""
    return "×".join(map(str, shape)) if len(shape) else "scalar"


def dtype_text(dtype: Any) -> str:
    """The name people use: ``bf16``, ``fp8_e4m3fn``, else the dtype's own."""
    return str(dtype).removeprefix("torch.").replace("bfloat16", "bf16").replace("float8_", "fp8_")


# --- tensors ----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def untouched(torch: Any) -> Iterator[None]:
    """Within, no subclass or mode is asked and no gradient recorded."""
    with contextlib.ExitStack() as stack:
        for guard in ("DisableTorchFunction", "_DisableTorchDispatch"):
            if hasattr(torch._C, guard):
                stack.enter_context(getattr(torch._C, guard)())
        stack.enter_context(torch.no_grad())
        yield


def _tensor(value: Any, bases: tuple[type, ...]) -> Described:
    torch: Any = sys.modules["torch"]
    name = _NAME.__get__(type(value))
    with untouched(torch):
        try:
            facts = _tensor_facts(torch, value)
        except Exception as e:
            return Described("tensor", name, {"type": name}, None, f"does not tell its shape ({type(e).__name__})")
    shape = facts["shape"]
    text = "nested" if shape is None else shape_text(shape)
    found = Described(
        "tensor", f"{name} {text} {dtype_text(facts['dtype'])} {facts['device']}", {"type": name, **facts}
    )
    if "layout" in facts:
        found.head += f" {facts['layout']}"
    found.source, found.note = _source(torch, value, bases, found)
    return found


def _tensor_facts(torch: Any, value: Any) -> dict[str, Any]:
    tensor = torch.Tensor
    is_nested = tensor.is_nested.__get__(value) and tensor.layout.__get__(value) is torch.strided
    shape = None if is_nested else [size if type(size) is int else str(size) for size in tensor.size(value)]
    facts: dict[str, Any] = {
        "shape": shape,
        "dtype": str(tensor.dtype.__get__(value)).removeprefix("torch."),
        "device": str(tensor.device.__get__(value)),
    }
    layout = str(tensor.layout.__get__(value)).removeprefix("torch.").lstrip("_")
    if layout != "strided":
        facts["layout"] = layout
    if tensor.requires_grad.__get__(value):
        facts["requiresGrad"] = True
    return facts


def _source(torch: Any, value: Any, bases: tuple[type, ...], found: Described) -> tuple[Any, str]:
    """What may be read of a tensor, or why nothing may."""
    names = [_NAME.__get__(base) for base in bases]
    if "DTensor" in names:
        return _local_shard(value, found)
    if "FakeTensor" in names or found.facts["device"] == "meta":
        return None, "no values"
    if "AsyncCollectiveTensor" in names:
        return None, "values not read: a collective may still write them"
    if next(base for base in bases if "__torch_dispatch__" in base.__dict__) is not torch.Tensor:
        return None, "values not read: its class has code of its own for that"
    is_wrapped = getattr(getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor", None)
    if is_wrapped is not None and is_wrapped(value):
        return None, "values not read: inside torch.func"
    if found.facts["shape"] is None:
        return None, "values not read: nested"
    return value, ""


def _local_shard(value: Any, found: Described) -> tuple[Any, str]:
    local, spec = (object.__getattribute__(value, name) for name in ("_local_tensor", "_spec"))
    placements = [repr(placement).replace("dim=", "").removesuffix("()") for placement in spec.placements]
    mesh = spec.mesh
    sizes = [int(size) for size in mesh.shape]
    axes = mesh.mesh_dim_names or [f"dim{at}" for at in range(len(sizes))]
    mesh_text = " × ".join(f"{axis} {size}" for axis, size in zip(axes, sizes, strict=True))
    shard = _tensor(local, _MRO.__get__(type(local)))
    found.facts |= {"placement": ", ".join(placements), "mesh": mesh_text, "local": shard.facts.get("shape")}
    found.head += f" · {found.facts['placement']} on {mesh_text}"
    if shard.facts.get("shape") is not None:
        found.head += f" · local {shape_text(shard.facts['shape'])}"
    return shard.source, shard.note


def plain_tensor(torch: Any, tensor: Any) -> Any:
    """The same memory as a tensor of no subclass and without gradient; to be called :func:`untouched`."""
    plain = torch.Tensor.detach(tensor)
    return plain if type(plain) is torch.Tensor else torch.Tensor.as_subclass(plain, torch.Tensor)


def readable(source: Any) -> tuple[Any, str]:
    """A plain array of what :func:`describe` gave as ``source``: no copy, or ``None`` and why not."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(source, torch.Tensor):
        return source, ""
    with untouched(torch):
        plain = plain_tensor(torch, source)
        layout = plain.layout
        if layout is torch.sparse_coo:
            return plain._values(), "of the values stored"
        if layout is not torch.strided and str(layout).startswith("torch.sparse"):
            return plain.values(), "of the values stored"
        if layout is not torch.strided:
            return None, f"values not read: {str(layout).removeprefix('torch.').lstrip('_')}"
        if plain.is_quantized:
            return (plain.dequantize(), "") if plain.numel() <= _DEQUANTIZED else (None, "values not read: quantized")
        if plain.numel() == 0:
            return None, "empty"
        last = sum((size - 1) * stride for size, stride in zip(plain.shape, plain.stride(), strict=True))
        if (plain.storage_offset() + last + 1) * plain.element_size() > plain.untyped_storage().nbytes():
            return None, "its memory is freed"
        return plain, ""


_DEQUANTIZED = 1 << 22


# --- arrays and tables ------------------------------------------------------------------------------------------


def _ndarray(value: Any) -> Described:
    numpy: Any = sys.modules["numpy"]
    plain = numpy.ndarray.view(value, numpy.ndarray)
    name = _NAME.__get__(type(value))
    dtype = str(plain.dtype) if plain.dtype.names is None else f"of {len(plain.dtype.names)} fields"
    facts = {"type": name, "shape": list(plain.shape), "dtype": dtype}
    found = Described("ndarray", f"{name} {shape_text(plain.shape)} {dtype}", facts)
    if plain.size == 0:
        found.note = "empty"
    elif plain.dtype.kind in "iufcb":
        found.source = plain
    return found


def _dataframe(value: Any) -> Described:
    frame: Any = sys.modules["pandas"].DataFrame
    name, shape = _NAME.__get__(type(value)), list(frame.shape.__get__(value))
    dtypes = frame.dtypes.__get__(value)
    columns = [f"{_key(label)} {dtype}" for label, dtype in islice(dtypes.items(), _SHOWN_ENTRIES)]
    head = f"{name} {shape_text(shape)}" + _listed(columns, shape[1])
    return Described("dataframe", head, {"type": name, "shape": shape, "columns": columns})


def _series(value: Any) -> Described:
    series: Any = sys.modules["pandas"].Series
    name, dtype, count = _NAME.__get__(type(value)), series.dtype.__get__(value), int(series.size.__get__(value))
    found = Described("series", f"{name} {count} {dtype}", {"type": name, "shape": [count], "dtype": str(dtype)})
    if count == 0:
        found.note = "empty"
    elif type(dtype).__module__.startswith("numpy") and dtype.kind in "iufcb":
        found.source = series.to_numpy(value)
    return found


# --- batches ----------------------------------------------------------------------------------------------------


def entries_of(value: Any) -> dict[str, Any] | None:
    """The entries of a TensorDict or tensorclass by name; ``None`` when it is neither."""
    fields = _fields(value)
    if fields is None or not ("_tensordict" in fields or "tensordicts" in fields):
        return None
    held = fields.get("_tensordict")
    if isinstance(held, dict):
        return dict(held)
    if held is not None:
        return entries_of(held)
    parts = fields["tensordicts"]
    return {f"[{at}]": part for at, part in enumerate(parts)} if isinstance(parts, list) else None


def proto_parts(value: Any) -> dict[str, Any] | None:
    """``batch``, ``non_tensor_batch`` and ``meta_info`` of verl's DataProto; ``None`` when it is none."""
    fields = _fields(value)
    if fields is None or not {"batch", "non_tensor_batch", "meta_info"} <= fields.keys():
        return None
    return {name: fields[name] for name in ("batch", "non_tensor_batch", "meta_info")}


def _fields(value: Any) -> dict[str, Any] | None:
    try:
        fields = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return fields if isinstance(fields, dict) else None


def _tensordict(value: Any, entries: dict[str, Any]) -> Described:
    name = _NAME.__get__(type(value))
    fields: dict[str, Any] = _fields(value) or {}
    holder: dict[str, Any] = fields if "_batch_size" in fields else _fields(fields.get("_tensordict")) or {}
    size = holder.get("_batch_size")
    shape = [int(length) for length in size] if size is not None else None
    head = name if shape is None else f"{name} {shape_text(shape)}"
    return Described("tensordict", head + _brief(entries), {"type": name, "shape": shape, "entries": sorted(entries)})


def _dataproto(value: Any, parts: dict[str, Any]) -> Described:
    name = _NAME.__get__(type(value))
    tensors, others, meta = parts["batch"], parts["non_tensor_batch"], parts["meta_info"]
    entries = entries_of(tensors) or {}
    texts = [f"batch{_brief(entries)}"]
    for label, part in (("non-tensor", others), ("meta", meta)):
        if isinstance(part, dict) and part:
            texts.append(label + _listed([_key(key) for key in islice(part, _SHOWN_ENTRIES)], len(part)))
    shape = (_fields(tensors) or {}).get("_batch_size")
    length = [] if shape is None else [int(shape[0])]
    head = " · ".join([f"{name} {shape_text(length)}" if length else name, *texts])
    return Described("dataproto", head, {"type": name, "shape": length, "entries": sorted(entries)})


def _brief(entries: dict[str, Any]) -> str:
    texts = []
    for key, entry in islice(entries.items(), _SHOWN_ENTRIES):
        found = describe(entry)
        shape, dtype = (found.facts.get("shape"), found.facts.get("dtype")) if found else (None, None)
        words = [_key(key), shape_text(shape) if shape is not None else "", dtype_text(dtype) if dtype else ""]
        texts.append(" ".join(word for word in words if word))
    return _listed(texts, len(entries))


def _listed(texts: list[str], count: int) -> str:
    return ": " + ", ".join(texts) + (f", … ({count} in all)" if count > len(texts) else "") if texts else ""


def _key(key: Any) -> str:
    """A name that is text or a number; of any other only the class."""
    return str(key)[:60] if type(key) in {str, int, float, bool} else f"<{_NAME.__get__(type(key))}>"
