"""The texts that are open in the editor, changed as the editor changes them.

pygls could keep them, but counts a form feed and U+2028 as the end of a line, which editors and Python do not, and
drops edits for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lsprotocol import types

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


class Document:
    """One open text. Lines from 0, characters in UTF-16 units, as the protocol counts."""

    def __init__(self, text: str, version: int | None) -> None:
        self.text = text
        self.version = version
        self.linted: int | None = None
        """The version that its lints are of."""
        self._moves: list[tuple[int, int]] = []
        self._saved = 0

    def change(self, changes: Sequence[types.TextDocumentContentChangeEvent], version: int | None) -> None:
        """Apply an edit."""
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                self._replace(change.range, change.text)
            else:
                self.text = change.text
        self.version = version

    def _replace(self, place: types.Range, text: str) -> None:
        lines = _LINES.findall(self.text)
        start, end = (_offset(lines, position) for position in (place.start, place.end))
        self.text = f"{self.text[:start]}{text}{self.text[end:]}"
        moved = len(re.findall(r"\r\n|\r|\n", text)) - (place.end.line - place.start.line)
        if moved:
            is_above = place.start.character == 0 or place.end.line > place.start.line
            self._moves.append((place.end.line if is_above else place.end.line + 1, moved))

    def saved(self) -> None:
        """What moved stays so."""
        self._saved = len(self._moves)

    def rebase(self) -> None:
        """A run begins with the file as it was saved: lines are counted from there."""
        del self._moves[: self._saved]
        self._saved = 0

    def now(self, line: int) -> int:
        """Where a line of the file as it was when it was opened, or a run began, is now."""
        for at, by in self._moves:
            line += by if line >= at else 0
        return line


def utf16(line: str, byte: int) -> int:
    """A place in a line, given in bytes of UTF-8 as Python's trees have it, in UTF-16 units."""
    if line.isascii():
        return byte
    before = line.encode("utf-8", "surrogatepass")[:byte].decode("utf-8", "ignore")
    return len(before.encode("utf-16-le", "surrogatepass")) // 2


def _offset(lines: Sequence[str], position: types.Position) -> int:
    if position.line >= len(lines):
        return sum(map(len, lines))
    line = lines[position.line]
    column = position.character
    if not line.isascii():
        column = len(line.encode("utf-16-le", "surrogatepass")[: 2 * column].decode("utf-16-le", "ignore"))
    return sum(map(len, lines[: position.line])) + min(column, len(line.rstrip("\r\n")))
