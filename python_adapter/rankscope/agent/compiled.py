"""Lines of this process that run compiled (``torch.compile``): no debugger can stop there.

Dynamo keeps, per code object, the Python code that it replaced it by. What of the original's lines is not in that is
in the graph; so are the functions inlined into it, which a compile's tracing context lists. These are torch's own
internals, as of 2.13: where they are not as expected, nothing is claimed.
"""

from __future__ import annotations

import functools
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from types import CodeType, ModuleType
from typing import Any

from rankscope.agent import imports

_MAX_COMPILES = 4096
_MAX_ATTEMPTS = 4

# By compile id: of each attempt the code that was traced, the compiled function's own first. A compile that has to
# begin anew has several, of which the last counts.
_traced: dict[Any, list[list[CodeType]]] = {}


def install() -> None:
    """Remember what is inlined, from the first compile on."""
    imports.after_import("torch._guards", _watch_tracing)


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Serves ``compiled``: of ``places``, each ``[number, path, line]``, the numbers of those that run compiled."""
    wanted: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, path, line in arguments.get("places") or ():
        wanted[os.path.realpath(path)].append((int(number), int(line)))
    found: set[int] = set()
    for path, lines in _compiled(frozenset(wanted)):
        found.update(number for number, line in wanted[path] if line in lines)
    return {"compiled": sorted(found)}


def _compiled(paths: frozenset[str]) -> Iterator[tuple[str, set[int]]]:
    """The compiled lines of these files."""
    convert: Any = sys.modules.get("torch._dynamo.convert_frame")
    entries_of = getattr(sys.modules.get("torch._C._dynamo.eval_frame"), "_debug_get_cache_entry_list", None)
    tracker = getattr(convert, "input_codes", None)
    if entries_of is None or tracker is None:
        return
    for reference in list(getattr(tracker, "seen", ())):
        code = reference()
        if code is None or not (entries := entries_of(code)):
            continue
        if (path := _real(code.co_filename)) in paths:
            yield path, _lines(code) - {code.co_firstlineno}.union(*(_lines(entry.code) for entry in entries))
        for inlined in _inlined(code, entries):
            if (path := _real(inlined.co_filename)) in paths:
                yield path, _lines(inlined) - {inlined.co_firstlineno}


def _inlined(code: CodeType, entries: Iterable[Any]) -> Iterator[CodeType]:
    for entry in entries:
        attempts = [traced for traced in _traced.get(getattr(entry, "compile_id", None), ()) if traced[:1] == [code]]
        yield from attempts[-1][1:] if attempts else ()


def _lines(code: CodeType) -> set[int]:
    return {line for _, _, line in code.co_lines() if line}


@functools.lru_cache(maxsize=4096)
def _real(path: str) -> str:
    return os.path.realpath(path)


def _watch_tracing(module: ModuleType) -> None:
    context: Any = module.TracingContext
    own = context.__init__

    @functools.wraps(own)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it replaces one
        own(self, *args, **kwargs)
        compile_id = module.CompileContext.current_compile_id()
        if compile_id is None or not hasattr(self, "traced_code"):
            return
        attempts = _traced.setdefault(compile_id, [])
        attempts.append(self.traced_code)
        del attempts[:-_MAX_ATTEMPTS]
        if len(_traced) > _MAX_COMPILES:
            del _traced[next(iter(_traced))]

    context.__init__ = __init__
