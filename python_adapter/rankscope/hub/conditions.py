"""What stands in a breakpoint's fields, read and checked before any member sees it.

debugpy answers a malformed condition "verified" and then stops on it, so every
expression is compiled here. A rank set rides in a condition as a trailing comment;
the word ``barrier`` after it (``# @0-3 barrier``) makes a barrier of the breakpoint.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass

from rankscope.dap.messages import BARRIER_MODE, BREAKPOINT_MODES
from rankscope.errors import UserError
from rankscope.ranks import DRIVER, RankSet

_HIT = re.compile(r"\s*(==|>=|<=|>|<|%)?\s*(\d{1,15})\s*")
_BARRIER = re.compile(r"\s+barrier$")
_EXCEPTION_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")

# Run in the member, where the line is hit. Both modules are the agent's: they are there.
_IN_RANK_SET = '__import__("sys").modules["rankscope.agent.breaks"].in_rank_set({ranks!r})'
_COUNTS_HIT = '__import__("rankscope.agent.hits", fromlist=["counts"]).counts({key!r}, {how!r}, {number})'


def bad_condition(what: str, text: str, why: str) -> UserError:
    """The error of an expression that cannot be used."""
    return UserError("bad-condition", f"{what} '{text}': {why}.")


@dataclass(frozen=True)
class Condition:
    """When a breakpoint stops: on which ranks (``None``: in every member), and if what (``""``: always).

    ``is_barrier``: who stops there is held until all of the set have.
    """

    ranks: RankSet | None = None
    expression: str = ""
    hit: tuple[str, int] | None = None
    is_barrier: bool = False

    @classmethod
    def parse(
        cls,
        condition: str | None,
        hit: str | None = None,
        mode: str | None = None,
        names: Mapping[str, str] | None = None,
    ) -> Condition:
        """Read the fields as an editor sends them. Raises :class:`UserError` or its ``RankSetError``."""
        text, comment = split_comment(condition or "")
        ranks = None
        is_barrier = mode == BARRIER_MODE
        if comment.startswith("@"):
            written, has_word = split_barrier(comment[1:].strip())
            is_barrier = is_barrier or has_word
            ranks = RankSet.parse(written, names)
        elif mode:
            if mode not in BREAKPOINT_MODES:
                raise bad_condition("Mode", mode, f"it is none of {', '.join(BREAKPOINT_MODES)}")
            ranks = RankSet.parse(BREAKPOINT_MODES[mode])
        if text:
            compile_expression("Condition", text)
        return cls(ranks, "" if text == "True" else text, parse_hit(hit), is_barrier)

    def in_member(self, key: str, *, is_rank_sure: bool) -> str | None:
        """The condition as a member's debugpy evaluates it; ``None``: it always stops.

        The hit count is part of it, because debugpy's own ignores the condition and
        starts anew whenever another breakpoint of the file is edited.
        """
        parts = []
        if self.ranks is not None and not is_rank_sure:
            parts.append(_IN_RANK_SET.format(ranks=spelled(self.ranks)))
        if self.expression:
            parts.append(f"({self.expression})")
        if self.hit is not None:
            parts.append(_COUNTS_HIT.format(key=key, how=self.hit[0], number=self.hit[1]))
        return " and ".join(parts) or None


def spelled(ranks: RankSet) -> str:
    """A rank set without the names of launch.json, which a member does not know."""
    texts = []
    for part in sorted(ranks.parts, key=lambda part: part.group or ""):
        span = "all" if part.last is None else f"{part.first}-{part.last}:{part.step}"
        head = f"{part.group}/" if part.group is not None else "" if part.axis == "rank" else f"{part.axis}:"
        texts.append(DRIVER if part.axis == DRIVER else head + span)
    return ",".join(texts)


def split_comment(text: str) -> tuple[str, str]:
    """An expression without its comments, and the text of its last comment (without ``#``)."""
    comment = ""
    lines = text.splitlines(keepends=True)
    try:
        # In parentheses, so that it may have several lines, indented as they like.
        for token in tokenize.generate_tokens(io.StringIO(f"({text}\n)").readline):
            if token.type == tokenize.COMMENT:
                comment = token.string[1:].strip()
                row, column = token.start
                lines[row - 1] = lines[row - 1][: column - (row == 1)]
    except (tokenize.TokenError, SyntaxError, IndentationError):
        pass  # what is wrong with it is said when it is compiled
    return " ".join(line.strip() for line in lines).strip(), comment


def split_barrier(written: str) -> tuple[str, bool]:
    """A rank set without the word ``barrier`` that may follow it, and whether it does."""
    return _BARRIER.sub("", written), _BARRIER.search(written) is not None


def compile_expression(what: str, text: str) -> None:
    """Raises :class:`UserError` that points at the fault unless ``text`` is one Python expression."""
    try:
        compile(text, "<condition>", "eval")
    except (SyntaxError, ValueError) as e:
        column = f" at column {max(1, e.offset or 1)}" if isinstance(e, SyntaxError) else ""
        why = e.msg if isinstance(e, SyntaxError) else str(e)
        raise bad_condition(what, text, f"{why}{column}") from e


def parse_hit(text: str | None) -> tuple[str, int] | None:
    """``5``, ``==5``, ``>=5``, ``<=5``, ``>5``, ``<5`` or ``%5``. Raises :class:`UserError`."""
    if text is None or not text.strip():
        return None
    match = _HIT.fullmatch(text)
    if match is None:
        raise bad_condition("Hit count", text, "write 5, ==5, >=5, <=5, >5, <5 or %5")
    how, number = match[1] or "==", int(match[2])
    if how == "%" and number == 0:
        raise bad_condition("Hit count", text, "a remainder of 0 does not exist")
    return how, number


def log_message(text: str | None) -> str | None:
    """A log message as debugpy wants it. Raises :class:`UserError` where an ``{expression}`` cannot be read."""
    if not text:
        return None
    expressions = []
    depth, start = 0, 0
    for at, character in enumerate(text):
        if character == "{":
            depth += 1
            start = at + 1 if depth == 1 else start
        elif character == "}":
            depth -= 1
            if depth < 0:
                raise bad_condition("Log message", text, f"a '}}' without its '{{' at column {at + 1}")
            if depth == 0:
                expressions.append(text[start:at])
    if depth:
        raise bad_condition("Log message", text, f"the '{{' at column {start} is not closed")
    for expression in expressions:
        if not expression.strip():
            raise bad_condition("Log message", text, "there is nothing between '{' and '}'")
        compile_expression("Log expression", expression.strip())
    return _double_percent(text) if expressions else text


def _double_percent(text: str) -> str:
    """debugpy formats the text outside the braces with ``%``."""
    out, depth = [], 0
    for character in text:
        depth += {"{": 1, "}": -1}.get(character, 0)
        out.append("%%" if character == "%" and depth == 0 else character)
    return "".join(out)


def exception_names(text: str) -> tuple[str, ...]:
    """``ValueError, KeyError`` → the names. Raises :class:`UserError`."""
    names = tuple(name.strip() for name in text.split(",")) if text.strip() else ()
    for name in names:
        if not _EXCEPTION_NAME.fullmatch(name):
            raise bad_condition("Exception filter", text, f"'{name}' is no name of an exception")
    return names
