"""The lints of one file."""

from __future__ import annotations

import ast
import contextlib
import gc
import re
import warnings
from collections.abc import Collection, Iterator

from rankscope.lsp.problem import Problem
from rankscope.lsp.rules import RULES
from rankscope.lsp.syntax import Module
from rankscope.lsp.world import World

# A file without any of these words has nothing that a rule looks for.
_WORDS = re.compile(
    r"distributed|deepspeed|wait_for_everyone|manual_seed|\bseed\(|set_seed|LOCAL_RANK|\bray\b|backward\("
)
_IGNORED = re.compile(r"#\s*rankscope:\s*ignore(?:\[([\w\s,-]*)\])?")
_BOM = "\ufeff"


class Unreadable(Exception):
    """A text that is no Python, or none that this Python can read."""


def lint(text: str, disabled: Collection[str] = ()) -> list[Problem]:
    """What the rules find in a file, in order. Raises :class:`Unreadable`."""
    if _WORDS.search(text) is None:
        return []
    with _without_collector():
        try:
            world = World(Module(parse(text)))
            found = [problem for rule in RULES if rule.name not in disabled for problem in rule.check(world)]
        except RecursionError as e:  # of an expression that Python could parse, but not write again
            raise Unreadable(str(e)) from None
        ignored = _ignored_lines(text)
        kept = [problem for problem in found if not _is_ignored(problem, ignored)]
        return sorted(kept, key=lambda problem: (problem.node.lineno, problem.node.col_offset))


def parse(text: str) -> ast.Module:
    """The tree of a file, byte-order mark or not. Raises :class:`Unreadable`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes in somebody's strings
            return ast.parse(text.removeprefix(_BOM))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        raise Unreadable(str(e)) from None


def lines_of(text: str) -> list[str]:
    """The lines as the language and the protocol count them."""
    return re.split(r"\r\n|\r|\n", text.removeprefix(_BOM))


def rules_ignored_in(line: str) -> set[str] | None:
    """The rules that a line's comment switches off; empty for every rule, ``None`` without such a comment."""
    comment = _IGNORED.search(line)
    if comment is None:
        return None
    return {name.strip() for name in (comment[1] or "").split(",") if name.strip()}


def _ignored_lines(text: str) -> dict[int, set[str]]:
    if _IGNORED.search(text) is None:
        return {}
    found = ((number, rules_ignored_in(line)) for number, line in enumerate(lines_of(text), 1))
    return {number: names for number, names in found if names is not None}


def _is_ignored(problem: Problem, ignored: dict[int, set[str]]) -> bool:
    names = ignored.get(problem.node.lineno)
    return names is not None and (not names or problem.rule in names)


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """A tree has no cycles, and its many nodes set the collector off again and again: half of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
