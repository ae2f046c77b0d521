"""A program's own use of debugpy neither fails nor waits: RankScope holds the debugger.

``listen`` and ``connect`` give an address back without opening anything,
``wait_for_client`` returns at once, ``breakpoint`` stops through the hub.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rankscope.agent import breaks, imports

originals: dict[str, Callable[..., Any]] = {}


def install() -> None:
    """Guard debugpy as soon as somebody imports it."""
    imports.after_import("debugpy", _guard)


def original(name: str) -> Callable[..., Any]:
    """debugpy's own function of that name, whether guarded or not. Raises ``ImportError`` without debugpy."""
    module = importlib.import_module("debugpy")
    found: Callable[..., Any] = originals.get(name) or getattr(module, name)
    return found


def _guard(module: ModuleType) -> None:
    for name, guard in _guards.items():
        if hasattr(module, name) and name not in originals:
            originals[name] = getattr(module, name)
            setattr(module, name, guard)


def _listen(address: Any = 0, **_: Any) -> tuple[str, int]:
    """What ``listen`` and ``connect`` answer: the address asked for, nothing opened."""
    host, port = address if isinstance(address, (tuple, list)) else ("127.0.0.1", address)
    breaks.say_once("debugpy-listen", "the program's own debugpy.listen() or connect() was left out")
    return str(host), int(port)


def _wait_for_client() -> None:
    """Does not wait: the client is the hub."""


_wait_for_client.cancel = lambda: None  # type: ignore[attr-defined]


def _breakpoint() -> None:
    breaks.stop(sys._getframe(1), "debugpy.breakpoint()")


def _log_to(_path: Any) -> None:
    """Logging may have begun already, which debugpy answers with an error."""


def _trace_this_thread(should_trace: bool) -> None:
    if breaks.is_armed():
        originals["trace_this_thread"](should_trace)


def _debug_this_thread() -> None:
    if breaks.is_armed():
        originals["debug_this_thread"]()


_guards: dict[str, Callable[..., Any]] = {
    "listen": _listen,
    "connect": _listen,
    "wait_for_client": _wait_for_client,
    "breakpoint": _breakpoint,
    "log_to": _log_to,
    "trace_this_thread": _trace_this_thread,
    "debug_this_thread": _debug_this_thread,
}
