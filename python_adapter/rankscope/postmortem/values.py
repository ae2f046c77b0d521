"""Values of a frame, kept within bounds: as numbered nodes that a record can hold and a debugger can unfold.

No code of the person's runs: no ``__repr__``, property, ``__len__`` or ``__iter__`` of
theirs is called, so whatever a value is, keeping it neither blocks nor changes anything.
(``coredumpy``'s format was tried: it pickles whole containers, and a dict of five million
entries took 116 s and 86 MB; it cannot be bounded from outside.)
"""

from __future__ import annotations

import itertools
import re
import time
import types
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rankscope.postmortem import arrays

Node = dict[str, Any]
"""One kept value.

``type``: its class, with the module unless that is ``builtins``. ``text``: one line. ``kids``:
``[name, node number]`` of its parts. ``more``: how many parts were left out. ``facts``: name → text of what
is known of it besides (an array's shape, statistics). Absent keys are empty.
"""

MASK = "••• (left out: it looks like a secret)"
_SECRET = re.compile(
    r"secret|token(?!i[sz])|passw(or)?d|passphrase|api_?key|access_?key|private_?key|credential|(^|_)auth(_|$)",
    re.IGNORECASE,
)
_MAX_INT_BITS = 4096
_MRO: Any = type.__dict__["__mro__"]
_ARGS: Any = BaseException.__dict__["args"]
# Texts of these are their own class's work, short, and run no other code.
_PLAIN = (bool, int, float, complex, type(None), type(Ellipsis), type(NotImplemented), range)
_PLAIN_NAMES = frozenset(
    {
        "datetime.datetime",
        "datetime.date",
        "datetime.timedelta",
        "decimal.Decimal",
        "fractions.Fraction",
        "pathlib.PosixPath",
        "pathlib.PurePosixPath",
        "uuid.UUID",
        "torch.Size",
        "torch.dtype",
        "torch.device",
        "numpy.dtype",
    }
)


def is_secret(name: str) -> bool:
    """Whether a variable of that name is not to be kept."""
    return _SECRET.search(name) is not None


@dataclass(frozen=True)
class Limits:
    """What is kept at most: of one keeper in all, and of each value."""

    values: int = 20_000
    bytes: int = 3 << 20
    width: int = 100
    text: int = 2_000
    depth: int = 8
    seconds: float = 1.0


DEFAULT_LIMITS = Limits()


class Keeper:
    """Keeps values breadth first, so that what is near to the frame survives when a limit bites.

    :meth:`keep` numbers a value, :meth:`run` fills the nodes in. ``cut`` counts what was left out and why.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.nodes: list[Node] = []
        self.cut: dict[str, int] = {}
        self._limits = limits
        self._bytes = 0
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []  # an id is a value's own only as long as the value lives
        self._arrays: list[tuple[Node, arrays.Array]] = []
        self._queue: deque[tuple[int, Any, int]] = deque()

    def keep(self, value: Any, depth: int = 0) -> int:
        """The number of a value's node; the same object has one node."""
        known = self._numbers.get(id(value))
        if known is not None:
            return known
        number = len(self.nodes)
        self.nodes.append({"type": type_name(type(value)), "text": "…"})
        self._numbers[id(value)] = number
        self._alive.append(value)
        self._queue.append((number, value, depth))
        return number

    def keep_named(self, names: dict[str, Any]) -> Node:
        """A node for a scope: its variables are the parts, those that look like secrets masked."""
        node: Node = {"type": "scope", "text": ""}
        self._unfold(node, iter(names.items()), len(names), 0)
        return node

    def run(self, deadline: float | None = None) -> None:
        """Fill in everything that was numbered, until a limit or the deadline (``time.monotonic``) is reached."""
        until = time.monotonic() + self._limits.seconds
        until = until if deadline is None else min(until, deadline)
        while self._queue:
            number, value, depth = self._queue.popleft()
            node = self.nodes[number]
            if time.monotonic() > until:
                self._cut("time")
                node["text"] = "… (left out: out of time)"
            elif self._bytes > self._limits.bytes:
                self._cut("size")
                node["text"] = "… (left out: the record's share is full)"
            else:
                self._fill(node, value, depth)
        self._measure(until)
        self._alive.clear()
        self._numbers.clear()

    # --- one value --------------------------------------------------------------------------------

    def _fill(self, node: Node, value: Any, depth: int) -> None:
        try:
            if not self._fill_plain(node, value) and not self._fill_array(node, value):
                self._fill_container(node, value, depth)
        except Exception as e:  # a value may be changed by another thread while it is read
            self._cut("unreadable")
            node["text"] = f"… (could not be read: {type(e).__name__})"
        self._bytes += len(node["text"]) + 40

    def _fill_plain(self, node: Node, value: Any) -> bool:
        kind = type(value)
        if kind is str:
            node["text"] = self._clip(repr(str.__getitem__(value, slice(0, self._limits.text))), len(value))
        elif kind in (bytes, bytearray):
            node["text"] = self._clip(repr(bytes(value[: self._limits.text])), len(value))
        elif kind is int and value.bit_length() > _MAX_INT_BITS:
            node["text"] = f"an integer of {value.bit_length()} bits"
        elif kind in _PLAIN or node["type"] in _PLAIN_NAMES:
            node["text"] = repr(value)[: self._limits.text]
        elif _is(value, type):
            node["text"] = f"<class '{type_name(value)}'>"
        elif _is(value, types.ModuleType):
            node["text"] = f"<module '{types.ModuleType.__getattribute__(value, '__dict__').get('__name__')}'>"
        elif _is(value, types.FunctionType, types.MethodType):
            function = value.__func__ if _is(value, types.MethodType) else value
            node["text"] = _function_text(function)
        elif _is(value, types.BuiltinFunctionType, types.CodeType, types.FrameType, types.GeneratorType):
            node["text"] = f"<{kind.__name__} {getattr(value, '__name__', '')}>".replace(" >", ">")
        else:
            return False
        return True

    def _fill_array(self, node: Node, value: Any) -> bool:
        array = arrays.describe(value)
        if array is None:
            return False
        node["text"], node["facts"] = array.line, array.facts
        if array.size:
            self._arrays.append((node, array))
        return True

    def _measure(self, until: float) -> None:
        """Statistics last, small arrays first: reading memory takes longer than all the rest."""
        self._arrays.sort(key=lambda pair: pair[1].size)
        for node, array in self._arrays:
            if time.monotonic() > until:
                self._cut("time")
                continue
            try:
                arrays.measure(array, until)
            except Exception:  # an odd dtype: what is known of it stands
                self._cut("unreadable")
            node["text"] = array.line
        self._arrays.clear()

    def _fill_container(self, node: Node, value: Any, depth: int) -> None:
        parts, size, head = _parts(value)
        node["text"] = head
        if depth >= self._limits.depth:
            if size:
                node["more"] = size
                self._cut("depth", size)
            return
        self._unfold(node, parts, size, depth + 1)

    def _unfold(self, node: Node, parts: Iterator[tuple[str, Any]], size: int, depth: int) -> None:
        kids: list[list[Any]] = []
        for text, part in itertools.islice(parts, self._limits.width):
            if len(self.nodes) >= self._limits.values:
                self._cut("values", size - len(kids))
                break
            if is_secret(text):
                kids.append([text, self._masked()])
            else:
                kids.append([text[: self._limits.text], self.keep(part, depth)])
            self._bytes += len(text) + 12
        if kids:
            node["kids"] = kids
        if size > len(kids):
            node["more"] = size - len(kids)
            if len(kids) == self._limits.width:
                self._cut("width", size - len(kids))

    def _masked(self) -> int:
        self.nodes.append({"type": "", "text": MASK})
        return len(self.nodes) - 1

    def _clip(self, text: str, size: int) -> str:
        if size <= self._limits.text:
            return text
        self._cut("text", size - self._limits.text)
        return f"{text}… ({size:,} in all)"

    def _cut(self, why: str, count: int = 1) -> None:
        self.cut[why] = self.cut.get(why, 0) + max(1, count)


def type_name(kind: type) -> str:
    """A class as people write it: ``dict``, ``collections.deque``, ``train.Batch``."""
    fields = type.__getattribute__(kind, "__dict__")
    module = fields.get("__module__", "")
    name = type.__dict__["__qualname__"].__get__(kind)
    return f"{module}.{name}" if isinstance(module, str) and module not in ("", "builtins") else str(name)


def bases_of(value: Any) -> tuple[type, ...]:
    """The classes of a value; unlike ``isinstance`` this asks neither the value nor a metaclass."""
    bases: tuple[type, ...] = _MRO.__get__(type(value))
    return bases


def _is(value: Any, *kinds: type) -> bool:
    bases = bases_of(value)
    return any(kind in bases for kind in kinds)


def _length(base: Any, value: Any) -> int:
    return int(base.__len__(value))


def _function_text(function: Any) -> str:
    code = getattr(function, "__code__", None)
    where = f" at {code.co_filename}:{code.co_firstlineno}" if isinstance(code, types.CodeType) else ""
    return f"<function {getattr(function, '__qualname__', '?')}{where}>"


def _key(key: Any) -> str:
    """A dict's key in one line."""
    kind = type(key)
    if kind is str:
        return repr(key[:80])
    if kind in _PLAIN and not (kind is int and key.bit_length() > _MAX_INT_BITS):
        return repr(key)[:80]
    if kind is tuple:
        return "(" + ", ".join(_key(part) for part in key[:4]) + (", …)" if len(key) > 4 else ")")
    return f"<{type_name(kind)}>"


def _parts(value: Any) -> tuple[Iterator[tuple[str, Any]], int, str]:
    """A value's parts by name, how many there are, and its own line. Only methods of builtin classes are called."""
    head = type_name(type(value))
    for base, read in _CONTAINERS:
        if base in bases_of(value):
            size = _length(base, value)
            return itertools.chain(read(value), attributes_of(value).items()), size, f"{head} of {size:,}"
    if BaseException in bases_of(value):
        attributes = {"args": _ARGS.__get__(value), **attributes_of(value)}
        return iter(attributes.items()), len(attributes), head
    attributes = attributes_of(value)
    return iter(attributes.items()), len(attributes), f"<{head}>"


def attributes_of(value: Any) -> dict[str, Any]:
    """What an object holds in ``__dict__`` and ``__slots__``; no property and no ``__getattr__`` is called."""
    found: dict[str, Any] = {}
    for cls in bases_of(value):
        fields = type.__getattribute__(cls, "__dict__")
        held = fields.get("__dict__")
        if isinstance(held, types.GetSetDescriptorType):
            names = held.__get__(value)
            if isinstance(names, dict):
                found |= {name: names[name] for name in list(names)[:1000] if isinstance(name, str)}
        for name, field in list(fields.items()):
            if isinstance(field, types.MemberDescriptorType) and cls.__module__ not in ("builtins", "types"):
                try:
                    found.setdefault(name, field.__get__(value))
                except AttributeError:  # a slot that was never set
                    continue
    return found


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    return ((f"[{_key(key)}]", part) for key, part in dict.items(value))


def _indexed(read: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[tuple[str, Any]]]:
    return lambda value: ((f"[{index}]", part) for index, part in enumerate(read(value)))


_CONTAINERS: tuple[tuple[type, Callable[[Any], Iterator[tuple[str, Any]]]], ...] = (
    (dict, _items),
    (list, _indexed(list.__iter__)),
    (tuple, _indexed(tuple.__iter__)),
    (set, _indexed(set.__iter__)),
    (frozenset, _indexed(frozenset.__iter__)),
    (deque, _indexed(deque.__iter__)),
)
