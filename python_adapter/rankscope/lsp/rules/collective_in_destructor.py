"""A collective in a destructor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rankscope.lsp.problem import Problem
from rankscope.lsp.world import World

NAME = "collective-in-destructor"


def check(world: World) -> Iterator[Problem]:
    """A collective of the whole world in ``__del__``: each rank's garbage collector comes there in its own time.

    Never wrong but for a ``__del__`` that is only called by hand.
    """
    for collective in world.collectives:
        for scope in world.module.scopes_of(collective.call):
            if isinstance(scope, ast.FunctionDef) and scope.name == "__del__":
                message = f"{collective} in a destructor: ranks come to it at different times or never, and hang."
                yield Problem(NAME, collective.call, message)
