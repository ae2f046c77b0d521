"""The lints, one file each: pure functions of a file's syntax tree.

Each says in its docstring when it may be wrong. ``# rankscope: ignore[name]`` in the line switches one off there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from rankscope.lsp.problem import Problem
from rankscope.lsp.rules import (
    collective_in_destructor,
    collective_on_some_ranks,
    different_collectives,
    exit_before_collective,
    no_destroy_process_group,
    ray_get_in_loop,
    remote_breakpoint,
    seed_on_some_ranks,
    sync_on_one_rank,
    verl_local_rank,
)
from rankscope.lsp.world import World


class Rule(NamedTuple):
    """A lint, by the name that comments and settings use."""

    name: str
    check: Callable[[World], Iterator[Problem]]


RULES = tuple(
    Rule(module.NAME, module.check)
    for module in (
        collective_on_some_ranks,
        different_collectives,
        exit_before_collective,
        collective_in_destructor,
        seed_on_some_ranks,
        sync_on_one_rank,
        no_destroy_process_group,
        ray_get_in_loop,
        remote_breakpoint,
        verl_local_rank,
    )
)
