"""Which wait on a ``torch.distributed`` store a frame is in: stores wait in C++, where no frame says so.

The call is read from the source line, and what it names from the frame's variables; nothing of the job's is run.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import linecache
import sys
from collections.abc import Mapping
from datetime import timedelta
from types import FrameType
from typing import Any

from rankscope.postmortem import dump

_METHODS = ("get", "wait", "multi_get")
_WORDS = (*(f".{name}(" for name in _METHODS), "Store(")
_TIMEOUT_AT = {"wait": 1, "TCPStore": 4}  # its place among the positional arguments
_CONSTRUCTOR_SECONDS = 300.0  # TCPStore's own default
_NEARBY_LINES = 20


def of_frame(frame: FrameType) -> tuple[str, float | None] | None:
    """The call that an innermost frame waits in, such as ``store.wait``, and its time-out in seconds if it is known."""
    store: Any = getattr(sys.modules.get("torch._C._distributed_c10d"), "Store", None)
    if store is None:
        return None
    calls = _calls_at(frame)
    names = {**frame.f_globals, **dump.variables_of(frame)} if calls else {}
    return next((wait for call in calls if (wait := _wait(call, names, store)) is not None), None)


def _calls_at(frame: FrameType) -> list[ast.Call]:
    """The call that the frame is in; before Python 3.11, which does not say, the only one on its line that may be."""
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    nearby = "".join(lines[max(0, frame.f_lineno - _NEARBY_LINES) : frame.f_lineno + _NEARBY_LINES])
    if not any(word in nearby for word in _WORDS):
        return []
    calls = _calls("".join(lines))
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is None:
        here = [call for call in calls if call.lineno <= frame.f_lineno <= (call.end_lineno or 0) and _may_wait(call)]
        return here if len(here) == 1 else []
    place = next(itertools.islice(positions(), frame.f_lasti // 2, None), None)
    return [call for call in calls if place and (call.end_lineno, call.end_col_offset) == (place[1], place[3])]


@functools.lru_cache(maxsize=16)
def _calls(source: str) -> list[ast.Call]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _may_wait(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in _METHODS or name.endswith("Store")


def _wait(call: ast.Call, names: Mapping[str, Any], store: type) -> tuple[str, float | None] | None:
    try:
        if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS:
            owner = _value(call.func.value, names)
            if issubclass(type(owner), store):
                return f"store.{call.func.attr}", _timeout(call, call.func.attr, names, owner.timeout)
        made = _value(call.func, names)
        if isinstance(made, type) and issubclass(made, store):
            return made.__name__, _timeout(call, made.__name__, names, timedelta(seconds=_CONSTRUCTOR_SECONDS))
    except LookupError:
        pass
    return None


def _timeout(call: ast.Call, name: str, names: Mapping[str, Any], default: timedelta) -> float | None:
    """Seconds; ``None`` where an expression that we do not run says how many."""
    at = _TIMEOUT_AT.get(name, len(call.args))
    given = [keyword.value for keyword in call.keywords if keyword.arg == "timeout"] + call.args[at : at + 1]
    try:
        value = _value(given[0], names) if given else default
    except LookupError:
        return None
    return value.total_seconds() if isinstance(value, timedelta) else None


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """What a name, a chain of plain attributes, a constant or a ``timedelta(…)`` means. Raises ``LookupError``."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.Attribute):
        try:
            found = inspect.getattr_static(_value(node.value, names), node.attr)
        except AttributeError as e:
            raise LookupError(node.attr) from e
        if not isinstance(found, type) and hasattr(type(found), "__get__"):
            raise LookupError(node.attr)  # code of somebody's would have to run
        return found
    if isinstance(node, ast.Call) and _value(node.func, names) is timedelta:
        given = {keyword.arg: _value(keyword.value, names) for keyword in node.keywords if keyword.arg}
        try:
            return timedelta(*(_value(argument, names) for argument in node.args), **given)
        except (TypeError, OverflowError) as e:
            raise LookupError("timedelta") from e
    raise LookupError(type(node).__name__)
