"""Some ranks leave before a collective that the others go on to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rankscope.lsp.problem import Problem
from rankscope.lsp.world import Collective, World, is_exit

NAME = "exit-before-collective"


def check(world: World) -> Iterator[Problem]:
    """A ``return``, ``break``, ``continue``, ``raise`` or exit under a test on the rank, and further down a collective.

    The collective is of the whole world and stands in the same block or inside a later statement of it. Silent where
    the ranks that leave run a collective or something unknown before. Wrong only where they meet the collective in
    another file, or where what looks like a rank is none.
    """
    exits: dict[int, list[tuple[int, ast.If]]] = {}
    told: set[ast.AST] = set()
    for collective in sorted(world.collectives, key=lambda one: one.call.lineno):
        for statement in _before(world, exits, collective):
            if statement in told or not _leaves_alone(world, statement, collective):
                continue
            told.add(statement)
            test = world.test_of(statement)
            assert test is not None
            at = f"line {collective.call.lineno}"
            message = f"Ranks with `{test.text}` leave here, but {collective} in {at} waits for every rank."
            yield Problem(NAME, statement.body[-1], message, ((collective.call, "waits for every rank"),))


def _before(world: World, exits: dict[int, list[tuple[int, ast.If]]], collective: Collective) -> Iterator[ast.If]:
    """The exits of some ranks that come before a collective, in the blocks that it is in."""
    for outer, part in world.module.around(collective.call):
        if isinstance(part, ast.stmt):
            yield from _in_block(world, exits, part)
        if isinstance(outer, ast.If) and world.test_of(outer) is not None:
            return
    last = _outermost(world, collective.call)
    if last is not None:
        yield from _in_block(world, exits, last)


def _outermost(world: World, node: ast.AST) -> ast.stmt | None:
    """The statement of the function's own block that a node is in."""
    for outer, _ in world.module.around(node):
        node = outer
    return node if isinstance(node, ast.stmt) else None


def _in_block(world: World, exits: dict[int, list[tuple[int, ast.If]]], part: ast.stmt) -> Iterator[ast.If]:
    block, place = world.module.block_of(part)
    if id(block) not in exits:
        exits[id(block)] = [
            (at, statement)
            for at, statement in enumerate(block)
            if isinstance(statement, ast.If)
            and is_exit(statement.body[-1], world.module)
            and world.test_of(statement) is not None
        ]
    for at, statement in exits[id(block)]:
        if at < place:
            yield statement


def _leaves_alone(world: World, statement: ast.If, collective: Collective) -> bool:
    test, runs, rest = world.test_of(statement), world.may_run(statement.body), world.may_run(statement.orelse)
    is_known = runs.is_sure and not runs.ops and not rest.ops
    return is_known and test is not None and not world.has_counterpart(collective.op, test)
