"""Two sides of a branch on the rank that run different collectives."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from rankscope.lsp.problem import Problem
from rankscope.lsp.world import Collective, World

NAME = "different-collectives"


def check(world: World) -> Iterator[Problem]:
    """An ``if`` on the rank whose sides run collectives of the world one after the other, but not the same ones.

    Looks only at sides where every collective stands plainly, in no loop and no further branch, and that call nothing
    unknown. Wrong only where what looks like a rank is none.
    """
    by_call = {collective.call: collective for collective in world.collectives}
    branches = {found.statement for one in world.collectives if (found := world.branch_of(one.call)) is not None}
    for statement in sorted(branches, key=lambda statement: statement.lineno):
        test = world.test_of(statement)
        if test is None or not test.is_whole or not statement.orelse:
            continue
        sides = [_plain(world, by_call, side) for side in (statement.body, statement.orelse)]
        if sides[0] is None or sides[1] is None or not all(sides):
            continue
        ours, theirs = sides[0], sides[1]
        names = [[one.op for one in side] for side in sides if side]
        if names[0] == names[1]:
            continue
        pairs = zip(ours, theirs, strict=False)
        one, other = next((pair for pair in pairs if pair[0].op != pair[1].op), (ours[-1], theirs[-1]))
        message = (
            f"With `{test.text}` ranks run {_list(names[0])} here, the others {_list(names[1])}: all ranks have to run"
            " the same collectives in the same order."
        )
        yield Problem(NAME, one.call, message, ((other.call, "what the other ranks run"),))


def _plain(world: World, by_call: dict[ast.Call, Collective], side: Sequence[ast.stmt]) -> list[Collective] | None:
    """The collectives of a side in order; ``None`` where they cannot be told."""
    if not world.may_run(side).is_sure:
        return None
    found: list[Collective] = []
    todo: list[ast.stmt] = list(reversed(side))
    while todo:
        statement = todo.pop()
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            todo += reversed(statement.body)
            continue
        if isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign, ast.Return)) and statement.value is not None:
            collective = by_call.get(statement.value)  # type: ignore[call-overload]
            if collective is not None:
                found.append(collective)
                continue
        if world.may_run([statement]).ops:
            return None
    return found


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
