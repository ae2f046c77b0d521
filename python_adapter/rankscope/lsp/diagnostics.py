"""Problems and findings in the protocol's terms."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from lsprotocol import types

from rankscope.lsp.documents import Document, utf16
from rankscope.lsp.findings import Shown
from rankscope.lsp.lints import lines_of
from rankscope.lsp.problem import Problem

SOURCE = "RankScope"
_SECTION = "## The Problems panel"
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}


class Readme:
    """Where each code is explained: the row of a table. ``file`` is the README; ``None``: no links."""

    def __init__(self, file: Path | None) -> None:
        self._uri = "" if file is None else file.as_uri()
        self._rows: dict[str, int] = {}
        try:
            text = "" if file is None else file.read_text(encoding="utf-8")
        except OSError:
            text = ""
        heading = ""
        for number, line in enumerate(text.splitlines(), 1):
            if line.startswith("## "):
                heading = line
            elif line.startswith("| `") and heading == _SECTION:
                self._rows[line.split("`")[1]] = number

    def link(self, code: str) -> types.CodeDescription | None:
        """A link to a code's row."""
        row = self._rows.get(code)
        return None if row is None else types.CodeDescription(href=f"{self._uri}#L{row}")


def of_problems(uri: str, text: str, problems: Sequence[Problem], readme: Readme) -> list[types.Diagnostic]:
    """The lints of a file."""
    lines, has_bom = lines_of(text), text.startswith("\ufeff")

    def range_of(node: ast.stmt | ast.expr) -> types.Range:
        start = _position(lines, node.lineno, node.col_offset, has_bom)
        is_one_line = node.end_lineno == node.lineno and node.end_col_offset is not None
        end = node.end_col_offset if is_one_line else len(lines[node.lineno - 1].encode("utf-8", "surrogatepass"))
        return types.Range(start, _position(lines, node.lineno, end or 0, has_bom))

    return [
        types.Diagnostic(
            range=range_of(problem.node),
            message=problem.message,
            severity=types.DiagnosticSeverity.Information if problem.is_hint else types.DiagnosticSeverity.Warning,
            code=problem.rule,
            code_description=readme.link(problem.rule),
            source=SOURCE,
            related_information=[
                types.DiagnosticRelatedInformation(types.Location(uri, range_of(node)), text)
                for node, text in problem.related
            ],
            data={"rule": problem.rule},
        )
        for problem in problems
    ]


def of_finding(entry: Shown, document: Document | None, readme: Readme) -> types.Diagnostic:
    """A finding, at its line as it is now if the file is open."""
    data = {"ranks": entry.ranks, "record": entry.record, "tensor": entry.tensor, "expression": entry.expression}
    return types.Diagnostic(
        range=_whole_line(entry.line, document),
        message=entry.message,
        severity=_SEVERITIES[entry.severity],
        code=entry.kind,
        code_description=readme.link(entry.kind),
        source=SOURCE,
        related_information=[
            types.DiagnosticRelatedInformation(
                types.Location(Path(related.path).as_uri(), _whole_line(related.line, None)), related.text
            )
            for related in entry.related
        ],
        data={"finding": entry.kind, **data},
    )


def _whole_line(line: int, document: Document | None) -> types.Range:
    """From its first letter to its end, as far as the text is known."""
    at = max(0, line - 1)
    if document is not None:
        at = document.now(at)
        lines = lines_of(document.text)
        if at < len(lines):
            text = lines[at]
            start = len(text) - len(text.lstrip())
            return types.Range(types.Position(at, start), types.Position(at, utf16(text, len(text.encode()))))
    return types.Range(types.Position(at, 0), types.Position(at, _LONG))


_LONG = 10_000  # a client takes a column beyond the end of a line for its end


def _position(lines: Sequence[str], line: int, byte: int, has_bom: bool) -> types.Position:
    shift = 1 if has_bom and line == 1 else 0
    return types.Position(line - 1, utf16(lines[line - 1], byte) + shift)
