"""What is published: lints and findings of each file together, since the protocol takes all of a file at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from lsprotocol import types

Publish = Callable[[str, list[types.Diagnostic]], None]


class Board:
    """Diagnostics by URI. ``publish`` is called for files whose diagnostics have changed only."""

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._lints: dict[str, list[types.Diagnostic]] = {}
        self._findings: dict[str, list[types.Diagnostic]] = {}
        self._published: dict[str, list[types.Diagnostic]] = {}

    def set_lints(self, uri: str, diagnostics: list[types.Diagnostic]) -> None:
        """The lints of an open file; none when it is closed."""
        self._lints[uri] = diagnostics
        self._show([uri])

    def set_findings(self, diagnostics: Mapping[str, list[types.Diagnostic]]) -> None:
        """All findings there are."""
        files = {*self._findings, *diagnostics}
        self._findings = dict(diagnostics)
        self._show(files)

    def at(self, uri: str, lines: types.Range) -> list[types.Diagnostic]:
        """What stands in these lines of a file."""
        first, last = lines.start.line, lines.end.line
        shown = self._published.get(uri, ())
        return [one for one in shown if one.range.start.line <= last and first <= one.range.end.line]

    def _show(self, files: Iterable[str]) -> None:
        for uri in sorted(files):
            diagnostics = [*self._findings.get(uri, ()), *self._lints.get(uri, ())]
            if diagnostics != self._published.get(uri, []):
                self._published[uri] = diagnostics
                self._publish(uri, diagnostics)
