"""Names, attributes and indexes in a rank that runs: nothing is called, stopped or changed, and no memory is read.

Other threads run on meanwhile, so only what Python's own lock protects is looked at: plain values, and of a tensor
what it is (one element in CPU memory aside). A value is of the moment in which it was read.
"""

from __future__ import annotations

import ast
import os
import sys
import threading
from types import FrameType, ModuleType
from typing import Any

from rankscope.agent import shown, stacks, top
from rankscope.postmortem import arrays, dump, values

_MODULE_PARTS = ("_parameters", "_buffers", "_modules")


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Serves the question ``lookup``: ``expression``, and ``name`` with ``paths`` of the function to look in, if any.

    ``frame`` says where it was read, ``call`` what blocks there; without ``kind`` it cannot be looked up: code would
    have to run, there is no such name, or no such function is running.
    """
    frame, call = _place(str(arguments.get("name") or ""), set(arguments.get("paths") or ()))
    if frame is None:
        return {"call": call}
    where = {"name": frame.f_code.co_name, "path": frame.f_code.co_filename, "line": frame.f_lineno or 0}
    told: dict[str, Any] = {"frame": where, "call": call}
    try:
        value = _look(ast.parse(str(arguments["expression"]).strip(), mode="eval").body, frame)
        return {**told, **_described(value)}
    except _CannotLookError:
        return told
    except Exception as e:  # what it would raise if it were evaluated, too
        return {**told, **shown.failure(e)}


class _CannotLookError(Exception):
    """A call, an operator, a property: code would run. Or a name that there is not."""


def _place(name: str, paths: set[str]) -> tuple[FrameType | None, str]:
    """The main thread's innermost own frame, or its innermost one of that function; and the blocking call inside."""
    frame: FrameType | None = sys._current_frames().get(threading.main_thread().ident or 0)
    call = ""
    while frame is not None:
        code = frame.f_code
        if not name:
            is_it = stacks.is_own_file(code.co_filename)
        else:
            is_it = code.co_name == name and os.path.realpath(code.co_filename) in paths
        if is_it:
            return frame, call
        call = top.call_of(frame) or call  # the outermost wins: all_reduce rather than the wait inside it
        frame = frame.f_back
    return None, call


def _look(node: ast.expr, frame: FrameType) -> Any:
    if isinstance(node, ast.Name):
        names = frame.f_globals if frame.f_code.co_name == "<module>" else dump.variables_of(frame)
        for scope in (names, frame.f_globals):
            if node.id in scope:
                return scope[node.id]
    if isinstance(node, ast.Attribute):
        return _attribute(_look(node.value, frame), node.attr)
    if isinstance(node, ast.Subscript):
        return _item(_look(node.value, frame), _constant(node.slice))
    raise _CannotLookError


def _constant(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise _CannotLookError from None


def _item(value: Any, key: Any) -> Any:
    bases = values.bases_of(value)
    for kind in (dict, list, tuple):
        own = next((base for base in bases if "__getitem__" in base.__dict__), None)
        if own is kind:
            return kind.__getitem__(value, key)
    raise _CannotLookError


def _attribute(value: Any, name: str) -> Any:
    """What the object or its class plainly holds; a module of torch's holds its parts in dicts of its own."""
    if type(value) is ModuleType:
        return vars(value)[name]
    held = values.attributes_of(value)
    for parts in (held, *(held.get(part) for part in _MODULE_PARTS)):
        if type(parts) is dict and name in parts:
            return parts[name]
    for base in values.bases_of(value):
        fields = type.__getattribute__(base, "__dict__")
        if name in fields:
            if hasattr(type(fields[name]), "__get__"):
                raise _CannotLookError
            return fields[name]
    if any("__getattr__" in type.__getattribute__(base, "__dict__") for base in values.bases_of(value)):
        raise _CannotLookError
    raise AttributeError(f"'{values.type_name(type(value))}' object has no attribute '{name}'")


def _described(value: Any) -> dict[str, Any]:
    array = arrays.describe(value)
    if array is not None:
        return _array(value, array)
    if type(value) in (int, float):
        return shown.answer(value)
    keeper = values.Keeper(values.Limits(values=1, text=shown.MAX_TEXT, depth=0))
    keeper.keep(value)
    keeper.run()
    return {"kind": "text", "text": keeper.nodes[0]["text"], "type": keeper.nodes[0]["type"]}


def _array(value: Any, array: arrays.Array) -> dict[str, Any]:
    kind = values.type_name(type(value))
    if array.size == 1 and array.facts.get("shape") == "[]":
        found = value.item()
        if type(found) in (int, float):
            return {"kind": "number", "text": repr(found), "type": kind, "value": found}
    return {"kind": "text", "text": f"{array.line} · its values are not read while the rank runs", "type": kind}
