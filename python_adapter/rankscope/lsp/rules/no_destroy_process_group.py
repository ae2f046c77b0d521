"""Process groups that a script makes and never destroys."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rankscope.lsp.problem import Problem
from rankscope.lsp.world import World

NAME = "no-destroy-process-group"
_INITS = ("torch.distributed.init_process_group", "torch.distributed.distributed_c10d.init_process_group")
_ENDS = ("destroy_process_group", "cleanup", "destroy", "shutdown", "teardown", "end_training", "cleanup_distributed")


def check(world: World) -> Iterator[Problem]:
    """A script (it has ``if __name__ == "__main__":``) that calls ``init_process_group`` but nothing that ends it.

    Silent where anything is called by a name such as ``cleanup`` or ``shutdown``, and in classes. A hint: NCCL warns,
    and a rank that exits while others still send may fail them. Wrong where another file destroys the groups.
    """
    inits = [call for call in world.module.calls if world.module.name_of(call.func) in _INITS]
    if not inits or not any(_is_main(statement) for statement in world.module.tree.body):
        return
    names = {_last(call.func) for call in world.module.calls}
    if any(name.endswith(_ENDS) for name in names):
        return
    if any(isinstance(scope, ast.ClassDef) for scope in world.module.scopes_of(inits[0])):
        return
    message = "Nothing in this script calls `destroy_process_group()`: a rank that exits early may fail the others."
    yield Problem(NAME, inits[0], message, is_hint=True)


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _is_main(statement: ast.stmt) -> bool:
    test = statement.test if isinstance(statement, ast.If) else None
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"
