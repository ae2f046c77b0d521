"""A seed that only some ranks set."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rankscope.lsp.problem import Problem
from rankscope.lsp.syntax import within
from rankscope.lsp.world import World

NAME = "seed-on-some-ranks"
_SEEDS = frozenset(
    [
        "torch.manual_seed",
        "torch.random.manual_seed",
        "torch.cuda.manual_seed",
        "torch.cuda.manual_seed_all",
        "random.seed",
        "numpy.random.seed",
        "transformers.set_seed",
        "accelerate.utils.set_seed",
    ]
)


def check(world: World) -> Iterator[Problem]:
    """A global random generator seeded in a branch on the rank, where the other side does not seed it.

    Silent where the other side calls anything unknown. Wrong only where the other ranks are meant to differ by chance,
    or where what looks like a rank is none.
    """
    for call in world.module.calls:
        name = world.module.name_of(call.func)
        if name not in _SEEDS:
            continue
        branch = world.branch_of(call)
        if branch is None or not world.may_run(branch.others).is_sure:
            continue
        calls = [node for node in within(branch.others) if isinstance(node, ast.Call)]
        if any(world.module.name_of(other.func) in _SEEDS for other in calls):
            continue
        message = f"`{name}` seeds only the ranks with `{branch.chosen}`; the others draw other numbers."
        yield Problem(NAME, call, message, ((branch.statement.test, "the branch on the rank"),))
