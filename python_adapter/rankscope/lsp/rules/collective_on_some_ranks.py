"""A collective that other ranks cannot reach."""

from __future__ import annotations

from collections.abc import Iterator

from rankscope.lsp.problem import Problem
from rankscope.lsp.world import World

NAME = "collective-on-some-ranks"


def check(world: World) -> Iterator[Problem]:
    """A collective of the whole world in a branch on the rank, or in a function that a decorator runs on one rank.

    Silent where the other ranks run a collective too, or something unknown, and where another test of the file's sends
    other ranks into the same collective (rank 0 loads first, the rest wait). Wrong only where those ranks meet it in
    another file, or where what looks like a rank is none.
    """
    for collective in world.collectives:
        scope = world.module.scope_of(collective.call)
        decorator = world.is_on_one_rank(scope)
        if decorator:
            message = f"{collective} waits for every rank, but `@{decorator}` runs this on one rank only."
            yield Problem(NAME, collective.call, message)
            continue
        branch = world.branch_of(collective.call)
        if branch is None:
            continue
        others = world.may_run(branch.others)
        if others.ops or not others.is_sure or world.has_counterpart(collective.op, branch.test):
            continue
        message = f"{collective} waits for every rank, but only those with `{branch.chosen}` get here."
        yield Problem(NAME, collective.call, message, ((branch.statement.test, "the branch on the rank"),))
