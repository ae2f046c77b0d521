"""Stops that stand in the code: ``conditional_breakpoint``, ``breakpoint()`` and their relatives.

All stop through the hub, in the caller's frame, arming the member first where it is
dormant. Without a hub they say so once and go on: none ever blocks a job.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable
from types import FrameType, ModuleType
from typing import Any

from rankscope.agent import imports
from rankscope.ranks import RankFacts, RankSet

RankFilter = Callable[[Any], Any] | int | str | Iterable[int] | None

arm_seconds = 20.0
_said: set[str] = set()
_OFF = ("0", "false", "off", "no")


def conditional_breakpoint(
    condition: bool | Callable[[], Any] = True,
    rank_filter: RankFilter = None,
) -> None:
    """Stop here, in the caller's frame, where ``condition`` and ``rank_filter`` say so.

    ``condition`` is a bool or a callable without arguments. ``rank_filter`` is a rank, an
    iterable of ranks, a callable of the rank (``None`` where it is not known), or a rank
    set as a string (``"0,3-5"``). Costs less than a microsecond where the condition is
    false. ``VERL_DEBUG=0`` in the environment switches it off. Without a hub it does
    nothing but say so once. Raises ``RankSetError`` on a malformed rank set, and what the
    callables raise.
    """
    if not condition:
        return
    if condition is not True and callable(condition) and not condition():
        return
    if rank_filter is not None and not _concerns(rank_filter):
        return
    if os.environ.get("VERL_DEBUG", "").strip().lower() in _OFF:
        return
    stop(sys._getframe(1), "conditional_breakpoint()")


def stop(frame: FrameType | None, why: str) -> bool:
    """Stop the calling thread in ``frame`` through the hub; False where nobody is there to see it."""
    agent = _agent()
    if agent is None or not agent.arm_here(why, arm_seconds):
        say_once(why, f"{why} did not stop: no RankScope session is there to stop in")
        return False
    _suspend(frame)
    return True


def in_rank_set(text: str) -> bool:
    """Whether this process is in a rank set: the test that rides in a breakpoint's condition while its rank is open.

    A rank that is still provisional when the line is hit counts by its order of creation.
    """
    return _concerns(text)


def is_armed() -> bool:
    """Whether this process has the debugger."""
    agent = _agent()
    return agent is not None and bool(agent.is_armed)


def say_once(key: str, text: str) -> None:
    """Tell the person once per process: through the hub, or on stderr where there is none."""
    if key in _said:
        return
    _said.add(key)
    agent = _agent()
    if agent is not None:
        agent.notice("info", text)
    else:
        print(f"rankscope: {text}", file=sys.stderr)  # noqa: T201 - the only way to a person here


def install(arm_timeout: float) -> None:
    """Route every kind of breakpoint of this process to the hub."""
    global arm_seconds
    arm_seconds = arm_timeout
    install_hook()
    imports.after_import("torch.distributed", _replace_torch)
    imports.after_import("ray.util.rpdb", _replace_ray)
    imports.after_import("ray.util.debugpy", _replace_ray)


def install_hook() -> None:
    """Make the builtin ``breakpoint()`` ours; debugpy replaces it when it is imported, so again after arming."""
    import builtins

    sys.breakpointhook = _on_breakpoint
    sys.__breakpointhook__ = _on_breakpoint
    if builtins.breakpoint is not _builtin:
        builtins.breakpoint = _builtin


_builtin = breakpoint


def _agent() -> Any:
    return getattr(sys.modules.get("rankscope.agent.agent"), "current", None)


def _suspend(frame: FrameType | None) -> None:
    pydevd: Any = sys.modules["pydevd"]
    pydevd.settrace(
        suspend=True,
        trace_only_current_thread=True,
        patch_multiprocessing=False,
        stop_at_frame=frame,
        notify_stdin=False,
    )


def _on_breakpoint(*_args: Any, **_kwargs: Any) -> None:
    if os.environ.get("PYTHONBREAKPOINT") == "0":
        return
    stop(sys._getframe(1), "breakpoint()")


def _concerns(rank_filter: Any) -> bool:
    agent = _agent()
    facts = agent.facts if agent is not None else _facts_without_agent()
    if isinstance(rank_filter, str):
        known = facts if facts.rank is None else facts.with_changes(is_final=True)
        return _parsed(rank_filter).contains(known) is True
    if callable(rank_filter):
        return bool(rank_filter(facts.rank))
    if isinstance(rank_filter, int):
        return bool(facts.rank == rank_filter)
    return facts.rank in set(rank_filter)


def _facts_without_agent() -> RankFacts:
    rank = os.environ.get("RANK", "")
    return RankFacts(rank=int(rank) if rank.isdecimal() else None)


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> RankSet:
    return RankSet.parse(text)


def _replace_torch(module: ModuleType) -> None:
    """``torch.distributed.breakpoint``: that rank stops, nobody waits at a barrier for it."""
    own = getattr(module, "breakpoint", None)
    if own is None:
        return
    calls: dict[tuple[str, int], int] = {}

    @functools.wraps(own)
    def distributed_breakpoint(rank: int = 0, skip: int = 0, timeout_s: float | None = 3600) -> None:
        del timeout_s  # collectives.py raises every time-out already
        frame = sys._getframe(1)
        if skip > 0:
            place = (frame.f_code.co_filename, frame.f_lineno)
            calls[place] = calls.get(place, 0) + 1
            if calls[place] <= skip:
                return
        if module.get_rank() == rank:
            stop(frame, f"torch.distributed.breakpoint({rank})")

    module.breakpoint = distributed_breakpoint  # type: ignore[attr-defined]


def _replace_ray(module: ModuleType) -> None:
    """Ray's debugger opens a port and waits for a client without a bound; ours does neither."""

    def set_trace(*_args: Any, **_kwargs: Any) -> None:
        stop(sys._getframe(1), "ray.util.pdb.set_trace()")

    def post_mortem(*_args: Any, **_kwargs: Any) -> None:
        say_once("ray-post-mortem", "Ray's post-mortem debugger was left out: it waits for a client without a bound")

    for name, ours in (("set_trace", set_trace), ("_driver_set_trace", set_trace), ("_post_mortem", post_mortem)):
        if hasattr(module, name):
            setattr(module, name, ours)
