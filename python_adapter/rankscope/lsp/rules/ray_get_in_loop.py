"""``ray.get`` in a loop, on calls that are made there: they run one after the other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rankscope.lsp.problem import Problem
from rankscope.lsp.remote import remote_functions
from rankscope.lsp.syntax import within
from rankscope.lsp.world import World

NAME = "ray-get-in-loop"
_LEAVES = (ast.Break, ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await)


def check(world: World) -> Iterator[Problem]:
    """``ray.get(f.remote(…))`` in a ``for`` loop or comprehension, where the calls could run side by side.

    Only where each round calls a remote function of this file or another actor, and where no round needs what an
    earlier one has got, leaves the loop, or does more than to keep and print. A hint: it costs time. Wrong where the
    calls are meant to follow each other.
    """
    if not world.module.imports("ray"):
        return
    functions = remote_functions(world.module)
    for call in world.module.calls:
        if world.module.name_of(call.func) != "ray.get" or len(call.args) != 1:
            continue
        made = call.args[0]
        if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute) or made.func.attr != "remote":
            continue
        targets = _targets(world, call)
        first = _first(made.func)
        is_method = isinstance(made.func.value, ast.Attribute)
        if first in targets if is_method else first in functions and _uses(made, targets):
            message = (
                "Each `ray.get` waits for its own call before the next is made: make all calls, then get them at once."
            )
            yield Problem(NAME, call, message, is_hint=True)


def _targets(world: World, call: ast.Call) -> set[str]:
    """The names that the innermost loop around a call binds; empty where its rounds may need each other."""
    for outer, _ in world.module.around(call):
        if isinstance(outer, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            return {name for each in outer.generators for name in _names(each.target)}
        if isinstance(outer, (ast.While, ast.AsyncFor, ast.If, ast.Try)):
            return set()
        if isinstance(outer, ast.For):
            return _names(outer.target) if _is_simple(world, outer, call) else set()
    return set()


def _is_simple(world: World, loop: ast.For, call: ast.Call) -> bool:
    """Whether no round needs another one, leaves the loop, or calls what may need one."""
    nodes = list(within(loop.body))
    if any(isinstance(node, _LEAVES) for node in nodes):
        return False
    own = set(within([call]))
    calls = [node for node in nodes if isinstance(node, ast.Call) and node not in own]
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return all(world.is_harmless(other) for other in calls) and not bound & _names(call)


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _uses(made: ast.Call, targets: set[str]) -> bool:
    return any(_names(argument) & targets for argument in (*made.args, *(one.value for one in made.keywords)))


def _first(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
