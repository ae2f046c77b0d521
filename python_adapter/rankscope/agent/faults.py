"""Deaths that no Python code here sees: a fatal signal, and SIGTERM.

A handler in C writes every thread's stack into a file in the hub's private folder; then the signal does what it
would have done. For the fatal ones this is :mod:`faulthandler`, of which a process has but one: when the program
enables it for itself (Ray's workers do), it is the program's alone, as it would have been. Where it then writes into a
file, as a Ray worker's log, our file says which; else the hub has only what it saw last.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rankscope.wire.link import fault_file, fault_pointer

_own: dict[str, Callable[..., Any]] = {}
_file: Any = None
_is_theirs = False
_their_file: Any = None


def begin(folder: str, member: str) -> None:
    """Write this process's death down from now on, in a forked child anew. Does nothing on another node."""
    global _file
    if not folder:
        return
    try:
        file = open(fault_file(folder, member), "wb", buffering=0)  # noqa: SIM115 - it is there until the end
    except OSError:
        return
    _guard()
    if not _is_theirs:
        _own["enable"](file=file, all_threads=True)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        faulthandler.register(signal.SIGTERM, file=file, all_threads=True, chain=True)
    if _file is not None:
        _file.close()  # the parent's
    _file = file
    point_to_theirs()


def _guard() -> None:
    """The program's own use of it: the same answers as without us, and its wish counts."""
    global _is_theirs
    if _own:
        return
    _own.update(enable=faulthandler.enable, disable=faulthandler.disable, is_enabled=faulthandler.is_enabled)
    _is_theirs = faulthandler.is_enabled()

    def enable(*args: Any, **kwargs: Any) -> None:
        global _is_theirs, _their_file
        _own["enable"](*args, **kwargs)
        _is_theirs = True
        _their_file = args[0] if args else kwargs.get("file")
        point_to_theirs()

    def disable() -> bool:
        global _is_theirs
        was, _is_theirs = _is_theirs, False
        _own["disable"]()
        if _file is not None and not _file.closed:
            _own["enable"](file=_file, all_threads=True)
        return was

    def is_enabled() -> bool:
        return _is_theirs

    faulthandler.enable, faulthandler.disable, faulthandler.is_enabled = enable, disable, is_enabled  # type: ignore[assignment]
    os.register_at_fork(after_in_child=_forget)


def point_to_theirs() -> None:
    """Tell in our file into which file, from where on, the program's handler writes; nothing where that is no file.

    To be called again when standard error may have become another file.
    """
    if not _is_theirs or _file is None:
        return
    with suppress(OSError, ValueError, AttributeError):
        theirs = sys.stderr if _their_file is None else _their_file
        number = theirs if isinstance(theirs, int) else theirs.fileno()
        status = os.fstat(number)
        if stat.S_ISREG(status.st_mode) and not _file.closed:
            _file.write(fault_pointer(os.readlink(f"/proc/self/fd/{number}"), status.st_size))


def _forget() -> None:
    """A forked child that does not join writes nothing into its parent's file."""
    if _file is not None and not _file.closed:
        if not _is_theirs:
            _own["disable"]()
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            faulthandler.unregister(signal.SIGTERM)
