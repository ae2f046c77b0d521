"""What a person can do about a diagnostic."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator
from typing import Any

from lsprotocol import types

from rankscope.lsp.documents import Document, utf16
from rankscope.lsp.lints import lines_of, rules_ignored_in

# Commands of the extension; other editors need not know them.
BREAK_ON_RANKS = "rankscope.breakOnRanks"
COMPARE = "rankscope.compare"
OPEN_RUN = "rankscope.openRun"
# Commands of this server.
CLEAR = "rankscope.server.clearFindings"
IGNORE_TENSOR = "rankscope.server.ignoreTensor"


def actions_for(
    uri: str, diagnostic: types.Diagnostic, document: Document | None, client_commands: frozenset[str]
) -> Iterator[types.CodeAction]:
    """What is offered for one diagnostic; of the extension's commands those that the client has."""
    data: dict[str, Any] = diagnostic.data if isinstance(diagnostic.data, dict) else {}
    if "rule" in data and document is not None and document.linted == document.version:
        yield from _disable(uri, diagnostic, document, str(data["rule"]))
    if "finding" not in data:
        return
    ranks = str(data["ranks"])
    place = {"uri": uri, "lineNumber": diagnostic.range.start.line + 1, "ranks": ranks}
    offers = [
        (BREAK_ON_RANKS, ranks, "Break on the deviating ranks", [place]),
        (COMPARE, data["expression"] or data["tensor"], "Compare across ranks", [data["expression"]]),
        (OPEN_RUN, data["finding"] == "crash", "Open post-mortem", [data["record"]]),
    ]
    for command, is_meant, title, arguments in offers:
        if is_meant and command in client_commands:
            yield _command(title, command, arguments, diagnostic)
    if data["tensor"]:
        yield _command("Ignore this tensor", IGNORE_TENSOR, [data["tensor"], data["record"]], diagnostic)


def _command(title: str, command: str, arguments: list[Any], diagnostic: types.Diagnostic) -> types.CodeAction:
    return types.CodeAction(
        title=title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        command=types.Command(title=title, command=command, arguments=arguments),
    )


def _disable(uri: str, diagnostic: types.Diagnostic, document: Document, rule: str) -> Iterator[types.CodeAction]:
    """The comment that switches a rule off, where the line can take one."""
    at = diagnostic.range.start.line
    lines = lines_of(document.text)
    if at >= len(lines) or not _takes_comment(lines, at):
        return
    line = lines[at]
    present = rules_ignored_in(line)
    if present:
        inside = line.rindex("ignore[") + len("ignore[")
        start = end = types.Position(at, utf16(line, len(line[:inside].encode())))
        text = f"{rule}, "
    else:
        bom = 1 if at == 0 and document.text.startswith("\ufeff") else 0
        length = len(line.rstrip())
        start = types.Position(at, utf16(line, len(line[:length].encode())) + bom)
        end = types.Position(at, utf16(line, len(line.encode())) + bom)
        text = f"  # rankscope: ignore[{rule}]"
    yield types.CodeAction(
        title="Disable this rule on this line",
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        edit=types.WorkspaceEdit(changes={uri: [types.TextEdit(types.Range(start, end), text)]}),
    )


def _takes_comment(lines: list[str], at: int) -> bool:
    """Whether a line ends outside a string and is not continued by a backslash."""
    text = "\n".join(lines[at : at + 1000])
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.start[0] > 1:
                break
            if token.end[0] > 1 and token.type not in (tokenize.NEWLINE, tokenize.NL):
                return False
    except (tokenize.TokenError, SyntaxError, IndentationError):
        pass  # what is open at the end of the piece
    return not lines[at].endswith("\\")
