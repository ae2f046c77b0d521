"""Why this process ends, as far as it can say so itself: by an exception that nothing caught."""

from __future__ import annotations

import sys
from types import TracebackType

from rankscope.agent import exits
from rankscope.escapes import without_escapes

_MAX_CHARACTERS = 200
_MAX_LOOKED_AT = 4000

_noted: BaseException | None = None


def note(error: BaseException | None) -> None:
    """The process ends by this one, which somebody caught merely to turn it into an exit code."""
    global _noted
    _noted = error


def why() -> str:
    """``ValueError: bad batch``; empty when nothing was left uncaught. Asked at the very end of the process."""
    if isinstance(_noted, SystemExit):
        return exits.text_of(_noted.code)
    error = _noted or getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if error is None:
        left = exits.last()
        return "" if left is None else str(left[0]["text"])
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return ""
    if error is not _noted and not _reached_the_top(error.__traceback__):
        return ""
    return described(error)


def described(error: BaseException) -> str:
    """Type and first line, as a traceback's last line has them, and not too long."""
    kind = type(error)
    is_plain = kind.__module__ in ("builtins", "__main__")
    name = kind.__qualname__ if is_plain else f"{kind.__module__}.{kind.__qualname__}"
    try:
        lines = [line.strip() for line in str(error)[:_MAX_LOOKED_AT].splitlines()]
        text = next((line for line in lines if any(map(str.isalnum, line))), "".join(lines[:1]))
    except Exception:  # whatever the person's own __str__ does
        text = ""
    return without_escapes(f"{name}: {text}" if text else name)[:_MAX_CHARACTERS]


def _reached_the_top(trace: TracebackType | None) -> bool:
    """Whether it went through the outermost frame.

    Python keeps the last exception that it printed; so do consoles and test runners, of those they have caught.
    """
    return trace is None or trace.tb_frame.f_back is None
