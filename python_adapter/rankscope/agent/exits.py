"""``sys.exit`` with a code: where it was called, kept until it is known that the process ends by it.

Called while an exception is handled, it is that exception that the process ends by.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from rankscope.agent import stacks

Told = tuple[dict[str, Any], dict[str, Any]]
"""What is told of a failure, and its dump."""

_KEEP_SECONDS = 1.0
_MAX_AGE_SECONDS = 10.0
_PASSES_ON = f"{os.sep}multiprocessing{os.sep}"

_noted: tuple[float, Told] | None = None


def install(tell: Callable[[BaseException, str], Told], is_wanted: Callable[[], bool]) -> None:
    """Remember calls of ``sys.exit`` from now on, if ``is_wanted`` then says that somebody would want to know.

    ``tell`` describes an exception that is being handled meanwhile.
    """
    if isinstance(sys.exit, type):
        return

    class exit:  # noqa: A001, N801 - it stands for it
        """Ends the interpreter by ``SystemExit``. Python's own function raises it, so no frame of ours is in it."""

        __init__ = sys.exit  # called with the arguments alone: a builtin does not bind

        def __new__(cls, *args: Any, **_kwargs: Any) -> Any:
            try:
                if is_wanted():
                    _note(args, sys._getframe(1), tell)
            except Exception:  # whatever it is, it must not keep a process from ending
                pass
            return object.__new__(cls)

    exit.__module__, exit.__qualname__ = "sys", "exit"
    sys.exit = exit


def text_of(code: object) -> str:
    """``exited with code 3``; empty for an exit that says all is well."""
    if code is None or (isinstance(code, int) and code == 0):
        return ""
    return f"exited with code {code & 0xFF}" if isinstance(code, int) else "exited with code 1"


def cause_of(error: BaseException) -> BaseException:
    """Of ``SystemExit`` the exception that was handled when it was raised, if there was one."""
    context = error.__context__
    is_led_by_it = isinstance(error, SystemExit) and isinstance(context, Exception) and not error.__suppress_context__
    return context if context is not None and is_led_by_it else error


def last() -> Told | None:
    """The exit this process seems to end by. Asked at the very end.

    An exit that somebody caught, long before or not on the main thread, is none.
    """
    if _noted is None or time.monotonic() - _noted[0] > _MAX_AGE_SECONDS:
        return None
    return _noted[1]


def forget() -> None:
    """Another program of this process begins: a forked child."""
    global _noted
    _noted = None


def _note(args: tuple[Any, ...], caller: FrameType, tell: Callable[[BaseException, str], Told]) -> None:
    global _noted
    if threading.current_thread() is not threading.main_thread():
        return
    code = args[0] if len(args) == 1 else None
    text = text_of(code)
    if not text:
        _noted = None
        return
    handled = sys.exc_info()[1]
    if isinstance(handled, Exception):
        _noted = (time.monotonic(), tell(handled, "sys.exit"))
        return
    from rankscope.postmortem import dump  # loaded in a process that needs it, not in every one

    frame: FrameType | None = caller
    while frame is not None and not stacks.is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    if _noted is not None and _PASSES_ON in caller.f_code.co_filename:
        return
    place = frame or caller
    message = code if type(code) is str else str(code) if type(code) is int else ""
    about = {
        "type": "SystemExit",
        "message": message[:200],
        "text": text,
        "path": place.f_code.co_filename,
        "line": place.f_lineno or 0,
        "name": place.f_code.co_name,
        "how": "sys.exit",
        "isEcho": False,
        "wantsPause": False,
    }
    kept = dump.of_exit(message, stacks.is_own_file, deadline=time.monotonic() + _KEEP_SECONDS)
    _noted = (time.monotonic(), (about, kept))
