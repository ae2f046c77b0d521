"""A device synchronisation on one rank in each step of training."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rankscope.lsp.problem import Problem
from rankscope.lsp.syntax import within
from rankscope.lsp.world import World

NAME = "sync-on-one-rank"
_SYNCS = ("item", "cpu", "tolist")


def check(world: World) -> Iterator[Problem]:
    """``.item()``, ``.cpu()`` or ``.tolist()`` in a branch on the rank, in the loop that runs ``backward()``.

    Only in the innermost loop, and where no other test there limits how often it runs, such as each hundredth step. A
    hint: it costs time, as every rank waits for that one in the next collective. Wrong where the value is on the CPU
    already.
    """
    if not world.module.imports("torch"):
        return
    for call in world.module.calls:
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in _SYNCS or call.args:
            continue
        branch = world.branch_of(call)
        if branch is None or not branch.test.is_whole or not _is_in_step(world, call, branch.statement):
            continue
        message = (
            f"`.{call.func.attr}()` in every step waits for the device on ranks with `{branch.chosen}` only: the others"
            " wait for them in the next collective. Do it every so many steps."
        )
        yield Problem(NAME, call, message, ((branch.statement.test, "the branch on the rank"),), is_hint=True)


def _is_in_step(world: World, call: ast.Call, branch: ast.If) -> bool:
    """Whether it is run in each round of the innermost loop, which trains."""
    for outer, _ in world.module.around(call):
        if isinstance(outer, (ast.For, ast.AsyncFor, ast.While)):
            return any(_is_backward(node) for node in within(outer.body))
        if isinstance(outer, (ast.If, ast.IfExp, ast.ExceptHandler, ast.comprehension)) and outer is not branch:
            return False
    return False


def _is_backward(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward"
