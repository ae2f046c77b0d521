"""What ``rankscope run`` says: lines for a person, or one JSON object a line, always on standard error.

Standard output is the job's alone, byte for byte.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any, TextIO

_PREFIX = "rankscope: "


@dataclass(frozen=True)
class Frame:
    """One frame of a stack, innermost first."""

    function: str
    file: str
    line: int


@dataclass(frozen=True)
class Value:
    """A ``--print`` expression and what it came to, or why it did not."""

    expression: str
    value: str = ""
    error: str = ""


@dataclass(frozen=True)
class Stop:
    """One rank's stop. ``rank`` is its label, ``source`` the text of the line."""

    rank: str
    reason: str
    stack: list[Frame] = field(default_factory=list)
    source: str = ""
    text: str = ""
    values: list[Value] = field(default_factory=list)


class Report:
    """Writes whole lines at once, so that they do not mix with the job's."""

    def __init__(self, stream: TextIO, cwd: str, *, is_json: bool = False) -> None:
        self._stream = stream
        self._cwd = cwd
        self._is_json = is_json

    def stopped(self, stop: Stop) -> None:
        """A rank stopped: where, its stack, the values asked for."""
        if self._is_json:
            self._object("stopped", asdict(stop))
            return
        where = f" at {self._place(stop.stack[0])} in {stop.stack[0].function}" if stop.stack else ""
        lines = [f"{stop.rank} stopped ({stop.reason}){where}"]
        lines += [f"    {stop.text}"] if stop.text else []
        lines += [f"    {stop.source}"] if stop.source else []
        lines += [f"  {value.expression} = {value.value or value.error}" for value in stop.values]
        lines += [f"  called from {frame.function} at {self._place(frame)}" for frame in stop.stack[1:]]
        self._lines(lines)

    def logged(self, rank: str, text: str, file: str = "", line: int = 0) -> None:
        """A logpoint spoke."""
        if self._is_json:
            self._object("log", {"rank": rank, "text": text, "file": file, "line": line})
        else:
            self._lines([f"{rank}: {part}" for part in text.splitlines()])

    def breakpoint(self, location: str, message: str, *, is_verified: bool) -> None:
        """A breakpoint is not where it was asked for, or nowhere."""
        if self._is_json:
            self._object("breakpoint", {"location": location, "message": message, "verified": is_verified})
        else:
            self._lines([f"breakpoint {location}: {message}"])

    def notice(self, level: str, text: str, hint: str = "", code: str = "") -> None:
        """Something a person should read; ``level`` is info, warning or error."""
        if self._is_json:
            extra = {"hint": hint, "code": code} if code else {}
            self._object("notice", {"level": level, "text": text, **extra})
        else:
            mark = "" if level == "info" else f"{level}: "
            self._lines([f"{mark}{text}", *([f"  {hint}"] if hint else [])])

    def ended(self, exit_code: int, seconds: float) -> None:
        """The last line of a JSON report; a person sees the job's end without it."""
        if self._is_json:
            self._object("ended", {"exit_code": exit_code, "seconds": round(seconds, 3)})

    def _place(self, frame: Frame) -> str:
        inside = frame.file.startswith(self._cwd + os.sep)
        return f"{frame.file[len(self._cwd) + 1 :] if inside else frame.file}:{frame.line}"

    def _object(self, kind: str, facts: dict[str, Any]) -> None:
        self._write(json.dumps({"rankscope": kind, **facts}) + "\n")

    def _lines(self, lines: list[str]) -> None:
        self._write("".join(f"{_PREFIX}{line}\n" for line in lines))

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            pass  # nobody reads any more; the job goes on
