"""How a process becomes a member: once, bounded, and without a trace in the user's program.

What stays for the life of the process: the agent (its thread and socket, closed at
exit or after a fork), the import finder, the at-fork hook and the breakpoint hook.
"""

from __future__ import annotations

import atexit
import os
import platform
import socket
import sys
from dataclasses import asdict
from typing import Any

from rankscope.agent import agent as agents
from rankscope.agent import (
    breaks,
    children,
    collectives,
    compiled,
    crash,
    debugger,
    faults,
    guards,
    identity,
    imports,
    packed_stacks,
    pause_limits,
    ray_hook,
    recorder,
    stacks,
    sync_check,
    top,
)
from rankscope.ranks import RankFacts
from rankscope.wire.link import Endpoint
from rankscope.wire.messages import Hello

endpoint: Endpoint | None = None
_has_hooks = False


def start_process() -> None:
    """Join as what the environment says. A driver or rank then waits for its breakpoints, bounded."""
    where = Endpoint.load()
    if where is None or agents.current is not None:
        return
    parent = identity.read_parent(os.environ)
    facts = identity.of_process(os.environ, parent)
    _join(where, facts, parent.member if parent else "", waits=facts.role != "child")


def start_ray_worker(where: Endpoint) -> None:
    """Join as an idle Ray worker, which waits for nothing yet."""
    if agents.current is not None:
        return
    parent = identity.read_parent(os.environ)
    _join(where, RankFacts(role="idle"), parent.member if parent else "", waits=False, name="ray worker")


def start_forked(parent: str, facts: RankFacts) -> None:
    """Join as the forked child of a member; the state inherited from it has been dropped."""
    where = endpoint or Endpoint.load()
    if where is not None:
        _join(where, facts, parent, waits=False)


def _join(where: Endpoint, facts: RankFacts, parent: str, *, waits: bool, name: str = "") -> None:
    global endpoint
    endpoint = where
    if where.raise_timeouts:
        pause_limits.raise_environment()
    identity.member = os.urandom(8).hex()
    hello = Hello(
        member=identity.member,
        job=where.job,
        pid=os.getpid(),
        ppid=os.getppid(),
        host=socket.gethostname(),
        python=platform.python_version(),
        name=name or identity.process_name(getattr(sys, "orig_argv", sys.argv)),
        parent=parent,
        facts=asdict(facts),
        cwd=_cwd(),
        roots=stacks.roots(),
        waits=waits,
    )
    agent = agents.Agent(where, hello)
    agents.current = agent
    crash.forget()
    faults.begin(where.faults, identity.member)
    identity.publish(facts)
    _serve(agent)
    agent.start()
    _install_hooks(where, facts)
    agent.serve_start(where.start_wait)


def _serve(agent: agents.Agent) -> None:
    """Answers and hooks that belong to this one agent."""
    agent.answers["stacks"] = packed_stacks.answer
    agent.answers["top"] = top.top
    agent.answers["wake"] = debugger.wake
    agent.answers["paths"] = stacks.paths
    agent.answers["compiled"] = compiled.answer
    agent.answers["dump"] = crash.now
    agent.answers["timeouts"] = collectives.answer
    agent.answers["lookup"] = _look_up
    agent.answers["collectives"] = recorder.answer
    agent.answers["limits"] = pause_limits.answer
    agent.timers.append(recorder.look)
    agent.armed_hooks.append(breaks.install_hook)
    agent.armed_hooks.append(collectives.raise_all)
    agent.released_hooks.append(collectives.on_released)
    agent.released_hooks.append(imports.on_released)
    agent.file_watchers.append(imports.keep_traced)
    agent.file_watchers.append(children.on_files)
    agent.file_watchers.append(lambda _files: collectives.raise_all())


def _look_up(arguments: dict[str, Any]) -> dict[str, Any]:
    from rankscope.agent import lookup  # loaded where it is asked for, not in every process

    return lookup.answer(arguments)


def _install_hooks(where: Endpoint, facts: RankFacts) -> None:
    """What is installed once per process and outlives a fork."""
    global _has_hooks
    if facts.role == "child":
        children.watch_execution()
    if _has_hooks:
        return
    _has_hooks = True
    imports.install()
    breaks.install(where.start_wait)
    guards.install()
    identity.install()
    collectives.install()
    recorder.install()
    pause_limits.install()
    compiled.install()
    sync_check.install(where.sync)
    children.install(where.start_wait)
    crash.install()
    ray_hook.install()
    atexit.register(leave)


def leave() -> None:
    """The process ends: tell by what, and take leave of the hub."""
    agent: Any = agents.current
    if agent is not None:
        crash.leaves()
        recorder.leaves()
        agent.stop()


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:  # the working folder was removed
        return ""
