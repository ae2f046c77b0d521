"""``LOCAL_RANK`` in a verl worker."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rankscope.lsp.problem import Problem
from rankscope.lsp.world import World

NAME = "verl-local-rank"
_WORKERS = ("Worker", "MegatronWorker", "DistRankInfo")
_GETTERS = ("os.environ.get", "os.getenv")


def check(world: World) -> Iterator[Problem]:
    """``LOCAL_RANK`` read from the environment in a class that derives from verl's ``Worker``: it is always "0" there.

    Silent where it only chooses the device, which "0" does rightly. Wrong where verl was told to show every device to
    every worker (``RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES``).
    """
    if not world.module.imports("verl"):
        return
    for node in _reads(world):
        if any(_is_worker(world, scope) for scope in world.module.scopes_of(node)) and not _chooses_device(world, node):
            message = 'LOCAL_RANK is "0" in every verl worker; the local rank stands in the actor\'s name.'
            yield Problem(NAME, node, message)


def _reads(world: World) -> Iterator[ast.expr]:
    for call in world.module.calls:
        if world.module.name_of(call.func) in _GETTERS and call.args and _is_variable(call.args[0]):
            yield call
    for node in world.module.subscripts:
        if world.module.name_of(node.value) == "os.environ" and _is_variable(node.slice):
            yield node


def _is_variable(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "LOCAL_RANK"


def _is_worker(world: World, scope: ast.AST) -> bool:
    names = (world.module.name_of(base) for base in getattr(scope, "bases", ()))
    return any(name.startswith("verl.") and name.rpartition(".")[2] in _WORKERS for name in names)


def _chooses_device(world: World, node: ast.AST) -> bool:
    for outer, _ in world.module.around(node):
        if isinstance(outer, ast.Call) and "device" in world.module.name_of(outer.func):
            return True
    return False
