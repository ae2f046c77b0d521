"""A breakpoint in code that runs in Ray's workers."""

from __future__ import annotations

from collections.abc import Iterator

from rankscope.lsp.problem import Problem
from rankscope.lsp.remote import remote_names
from rankscope.lsp.world import World

NAME = "remote-breakpoint"
_PROMPTS = ("pdb.set_trace", "ipdb.set_trace", "pudb.set_trace")


def check(world: World) -> Iterator[Problem]:
    """``breakpoint()`` or ``pdb.set_trace()`` in what ``@ray.remote`` decorates.

    Never wrong: a worker has no terminal for a prompt, and ``breakpoint()`` waits for Ray's own debugger for ever,
    unless the job runs under RankScope.
    """
    if not world.module.imports("ray"):
        return
    remote = set(remote_names(world.module).values())
    for call in world.module.calls:
        name = world.module.name_of(call.func)
        if name != "breakpoint" and name not in _PROMPTS:
            continue
        if not any(scope in remote for scope in world.module.scopes_of(call)):
            continue
        if name == "breakpoint":
            message = "Without RankScope this worker waits here for ever; a breakpoint in the margin needs no edit."
        else:
            message = f"`{name}()` needs a terminal, and a Ray worker has none: set a breakpoint in the margin."
        yield Problem(NAME, call, message, is_hint=name == "breakpoint")
