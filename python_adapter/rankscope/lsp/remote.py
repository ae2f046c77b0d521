"""Which functions and classes of a file run in Ray's workers."""

from __future__ import annotations

import ast

from rankscope.lsp.syntax import Module

_REMOTE = "ray.remote"


def remote_names(module: Module) -> dict[str, ast.AST]:
    """By name: what ``@ray.remote`` decorates, and what is given to ``ray.remote(…)``."""
    defined: dict[str, ast.AST] = {node.name: node for node in (*module.functions, *module.classes)}
    found = {name: node for name, node in defined.items() if _is_decorated(module, node)}
    for call in module.calls:
        is_made = module.name_of(call.func) == _REMOTE and call.args and isinstance(call.args[0], ast.Name)
        if is_made and call.args[0].id in defined:  # type: ignore[attr-defined]
            name = call.args[0].id  # type: ignore[attr-defined]
            found[name] = defined[name]
    return found


def remote_functions(module: Module) -> set[str]:
    """The names whose ``.remote()`` starts a task."""
    decorated = {name for name, node in remote_names(module).items() if not isinstance(node, ast.ClassDef)}
    made = set()
    for assign in module.assigns:
        is_remote = isinstance(assign.value, ast.Call) and module.name_of(assign.value.func) == _REMOTE
        made |= {target.id for target in assign.targets if is_remote and isinstance(target, ast.Name)}
    return decorated | made


def _is_decorated(module: Module, node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", ())
    called = (one.func if isinstance(one, ast.Call) else one for one in decorators)
    return any(module.name_of(one) == _REMOTE for one in called)
