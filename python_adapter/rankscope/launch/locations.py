"""Breakpoints and logpoints as they are written in a terminal, checked before anything is started."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankscope.errors import LocationError, UserError
from rankscope.hub.conditions import compile_expression, log_message
from rankscope.ranks import RankSet

_LINE = re.compile(r"(?<=.):(?P<line>\d+)(?=$|[:@\s])")
_NOT_A_LINE = re.compile(r"(?<=.):(?P<line>[^:@\s]+)")


@dataclass(frozen=True)
class Location:
    """One breakpoint, or with ``message`` one logpoint. ``file`` is absolute; an empty text means absent."""

    text: str
    file: str
    line: int
    ranks: str = ""
    condition: str = ""
    message: str = ""

    def source_breakpoint(self) -> dict[str, Any]:
        """The DAP SourceBreakpoint: the rank set rides in the condition as a trailing comment."""
        made: dict[str, Any] = {"line": self.line}
        if self.ranks:
            made["condition"] = f"{self.condition or 'True'}  # @{self.ranks}"
        elif self.condition:
            made["condition"] = self.condition
        if self.message:
            made["logMessage"] = self.message
        return made


def parse_breakpoint(text: str, cwd: Path) -> Location:
    """Read ``FILE:LINE[@RANKS][ if EXPR]``. Raises :class:`UserError` and its kinds, pointing at the fault."""
    file, line, rest = _place(text)
    head, found, expression = rest.partition(" if ")
    if (found and not expression.strip()) or (not found and rest.rstrip().endswith(" if")):
        raise LocationError(text, f"an expression is missing after 'if' at column {len(text) + 1}")
    ranks = _ranks(text, head.strip(), len(text) - len(rest))
    if found:
        compile_expression("Condition", expression.strip())
    return Location(text, str(_existing(file, cwd, line)), line, ranks, expression.strip())


def parse_logpoint(text: str, cwd: Path) -> Location:
    """Read ``FILE:LINE[@RANKS]: text {expr}``. Raises as :func:`parse_breakpoint`."""
    file, line, rest = _place(text)
    head, found, message = rest.partition(": ")
    if not found or not message.strip():
        raise LocationError(text, f"': ' and the text to log are missing at column {len(text) + 1}")
    ranks = _ranks(text, head.strip(), len(text) - len(rest))
    log_message(message)
    return Location(text, str(_existing(file, cwd, line)), line, ranks, message=message.strip())


def _place(text: str) -> tuple[str, int, str]:
    """File, line and the rest of a location. The line follows the first colon that has a number after it."""
    found = _LINE.search(text)
    if found is None:
        wrong = _NOT_A_LINE.search(text)
        if wrong is None:
            raise LocationError(text, f"':LINE' is missing at column {len(text) + 1}")
        raise LocationError(text, f"'{wrong['line']}' is not a line number at column {wrong.start('line') + 1}")
    line = int(found["line"])
    if line < 1:
        raise LocationError(text, f"lines start at 1, not {line}, at column {found.start('line') + 1}")
    rest = text[found.end() :]
    if rest.strip() and not rest.startswith(("@", ": ", " if ")) and rest.rstrip() not in (" if", ":"):
        raise LocationError(text, f"'{rest.strip()}' is not understood at column {found.end() + 1}")
    return text[: found.start()], line, rest


def _ranks(text: str, head: str, at: int) -> str:
    if not head:
        return ""
    if not head.startswith("@"):
        raise LocationError(text, f"'{head}' is not understood at column {at + 1}")
    RankSet.parse(head[1:])
    return head[1:]


def _existing(file: str, cwd: Path, line: int) -> Path:
    path = (cwd / Path(file).expanduser()).absolute()
    if not path.is_file():
        near = [entry.name for entry in path.parent.iterdir() if entry.is_file()] if path.parent.is_dir() else []
        alike = difflib.get_close_matches(path.name, near, n=1)
        hint = f"Did you mean {Path(file).with_name(alike[0])}?" if alike else f"Paths are relative to {cwd}."
        raise UserError("no-such-file", f"'{file}' does not exist.", hint)
    with path.open("rb") as content:
        count = sum(1 for _ in content)
    if line > count:
        raise LocationError(f"{file}:{line}", f"the file has {count} lines")
    return path
