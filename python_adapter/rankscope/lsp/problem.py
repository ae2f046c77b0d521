"""A mistake that a rule has found."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """At a node of the tree. ``related``: other nodes, and what is to be known of each. ``is_hint``: no fault yet."""

    rule: str
    node: ast.stmt | ast.expr
    message: str
    related: tuple[tuple[ast.stmt | ast.expr, str], ...] = ()
    is_hint: bool = False
