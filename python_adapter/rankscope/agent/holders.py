"""One line for a container, dataclass or namedtuple with tensors in it, whose ``repr`` would print them all.

Only classes that print by Python's own code are told here, and only by methods of Python's own classes.
"""

from __future__ import annotations

import sys
import types
from collections import OrderedDict, UserDict, defaultdict, deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from rankscope.tensors.kinds import describe, kind_of_class

_WIDTHS = (60, 20)  # outside and inside, as debugpy has them
_DEPTH = 3
_ITEM_TEXT = 128
_MRO: Any = type.__dict__["__mro__"]

Parts = Iterator[tuple[str, Any]]
"""The text before each part, and the part."""


def prints_parts(cls: type) -> bool:
    """Whether the ``repr`` of that class is Python's own and prints what an object holds."""
    return _reader(cls) is not None


def holder_line(value: Any) -> str | None:
    """The line of a holder with a tensor, array, table or batch in it; ``None`` without one."""
    return _line(value, 0) if _holds_array(value, 0) else None


def _plain(read: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Parts]:
    return lambda value: (("", part) for part in read(value))


def _items(value: Any) -> Parts:
    return ((f"{_text(key, _DEPTH)}: ", part) for key, part in dict.items(value))


def _named(value: Any) -> Parts:
    fields = getattr(type(value), "__dataclass_fields__", None)
    held = object.__getattribute__(value, "__dict__") if hasattr(value, "__dict__") else None
    if fields is None:
        return ((f"{name}=", part) for name, part in (held or {}).items())
    names = [name for name, field in fields.items() if field.repr]
    return ((f"{name}=", object.__getattribute__(value, name)) for name in names)


def _of_namedtuple(value: Any) -> Parts:
    return ((f"{name}=", part) for name, part in zip(type(value)._fields, tuple.__iter__(value), strict=False))


# What a class prints is known by whose ``__repr__`` it has.
_READERS: dict[Any, tuple[Callable[[Any], Parts], str, str]] = {
    list.__dict__["__repr__"]: (_plain(list.__iter__), "[", "]"),
    tuple.__dict__["__repr__"]: (_plain(tuple.__iter__), "(", ")"),
    set.__dict__["__repr__"]: (_plain(set.__iter__), "{", "}"),
    frozenset.__dict__["__repr__"]: (_plain(frozenset.__iter__), "frozenset({", "})"),
    deque.__dict__["__repr__"]: (_plain(deque.__iter__), "deque([", "])"),
    dict.__dict__["__repr__"]: (_items, "{", "}"),
    OrderedDict.__dict__["__repr__"]: (_items, "OrderedDict({", "})"),
    defaultdict.__dict__["__repr__"]: (_items, "defaultdict({", "})"),
    UserDict.__dict__["__repr__"]: (lambda value: _items(value.data), "{", "}"),
    type({}.values()).__dict__["__repr__"]: (_plain(iter), "dict_values([", "])"),
    type({}.items()).__dict__["__repr__"]: (_plain(iter), "dict_items([", "])"),
    types.SimpleNamespace.__dict__["__repr__"]: (_named, "namespace(", ")"),
}


def _reader(cls: type) -> tuple[Callable[[Any], Parts], str, str] | None:
    bases = _MRO.__get__(cls)
    own = next(base.__dict__["__repr__"] for base in bases if "__repr__" in base.__dict__)
    try:
        known = _READERS.get(own)
    except TypeError:  # a ``__repr__`` that cannot be hashed
        return None
    if known is not None:
        return known
    name = f"{cls.__name__}("
    if tuple in bases:
        if cls.__module__ == "torch.return_types":
            return _plain(tuple.__iter__), name, ")"
        is_named = getattr(own, "__module__", "") == "collections" and hasattr(cls, "_fields")
        return (_of_namedtuple, name, ")") if is_named else None
    is_generated = hasattr(cls, "__dataclass_fields__") and own.__name__ == "__repr__" and hasattr(own, "__wrapped__")
    return (_named, name, ")") if is_generated else None


def _shown(value: Any, depth: int) -> Parts:
    reader = _reader(type(value))
    assert reader is not None
    return islice(reader[0](value), _WIDTHS[depth > 0] + 1)


def _holds_array(value: Any, depth: int) -> bool:
    if depth > _DEPTH or not prints_parts(type(value)):
        return False
    return any(kind_of_class(type(part)) or _holds_array(part, depth + 1) for _, part in _shown(value, depth))


def _line(value: Any, depth: int) -> str:
    reader = _reader(type(value))
    assert reader is not None
    texts = [before + _text(part, depth + 1) for before, part in _shown(value, depth)]
    if len(texts) > _WIDTHS[depth > 0]:
        texts[-1] = "..."
    comma = "," if type(value) is tuple and len(texts) == 1 else ""
    return f"{reader[1]}{', '.join(texts)}{comma}{reader[2]}"


def _text(value: Any, depth: int) -> str:
    if kind_of_class(type(value)):
        found = describe(value)
        if found is not None:
            return found.head
    if _holds_array(value, depth):
        return _line(value, depth)
    safe: Any = sys.modules["_pydevd_bundle.pydevd_safe_repr"].SafeRepr()
    safe.maxstring_outer = safe.maxother_outer = _ITEM_TEXT
    return str(safe(value))
