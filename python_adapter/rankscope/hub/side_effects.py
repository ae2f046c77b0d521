"""A guess whether an expression changes something: many ranks evaluate it, and a person should know of that."""

from __future__ import annotations

import ast

_LOOKS = """
abs all any bool bytes dict dir enumerate filter float format frozenset getattr hasattr hash hex id int isfinite isinf
isinstance isnan issubclass len list map max min oct ord range repr reversed round set slice sorted str sum tuple type
vars zip
allclose argmax argmin argsort bfloat16 bincount children clone contiguous copy count count_nonzero cpu data_ptr detach
diff dim double element_size endswith equal flatten get get_rank get_world_size half index is_contiguous item items keys
long lower mean median memory_allocated memory_reserved modules named_buffers named_modules named_parameters norm numel
numpy parameters permute prod quantile reshape shape size split square squeeze startswith state_dict std stride strip
tolist topk transpose unique unsqueeze upper values var view
"""
_HARMLESS = frozenset(_LOOKS.split())


def warning(expression: str) -> str | None:
    """What an expression may change, or ``None``. Raises ``SyntaxError`` when it is none."""
    assigned: list[str] = []
    called: list[str] = []
    for node in ast.walk(ast.parse(expression.strip(), mode="eval")):
        if isinstance(node, ast.NamedExpr):
            assigned.append(node.target.id)
        elif isinstance(node, ast.Call):
            name = _name(node.func)
            if name not in _HARMLESS:
                called.append(name)
    if called:
        return f"each rank has called {', '.join(dict.fromkeys(called))}: what that changed stays changed"
    return f"the assignment to {', '.join(assigned)} is not kept" if assigned else None


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else "a function"
