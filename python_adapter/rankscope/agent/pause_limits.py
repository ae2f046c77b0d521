"""Time-outs that run on while somebody is paused: raised where the environment can, else told with the time left.

Process groups' own are :mod:`collectives`' matter. Nothing here runs until the hub asks, which it does only while
somebody is paused; but for one reading of the clock in each ``ray.get`` and ``ray.wait``, whose start no frame tells.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from types import FrameType, ModuleType
from typing import Any

from rankscope.agent import collectives, imports, stacks

WEEK = 7 * 24 * 3600
_OUTLIVES_A_PAUSE = 24 * 3600
_A_POLL_SECONDS = 10  # who waits so short a time, and fails nothing by it, asks again and again
_KEEP_ALIVE_SECONDS = 5  # torch elastic's default interval
# How long ago we must have looked for a wait that was not there then to have begun since.
_RECENT_SECONDS = 3.0
_HEARTBEAT = "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"
_HEARTBEAT_SECONDS = 480.0
_RENDEZVOUS_OPTION = "torchrun --rdzv-conf"
_ELASTIC = "torch.distributed.elastic"

ENVIRONMENT = {
    _HEARTBEAT: f"{WEEK}",
    "PET_RDZV_CONF": f"timeout={WEEK},join_timeout={WEEK},keep_alive_max_attempt={WEEK // _KEEP_ALIVE_SECONDS}",
    "RAY_CGRAPH_get_timeout": f"{WEEK}",
    "RAY_CGRAPH_submit_timeout": f"{WEEK}",
    "RAY_TRAIN_WORKER_HEALTH_CHECK_TIMEOUT_S": f"{WEEK}",
    "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": f"{WEEK}",
}


@dataclass(frozen=True)
class Limit:
    """``what`` names it; ``ends`` is on the monotonic clock, ``None``: not known. ``option`` is what raises it.

    ``fails``: it ends in an error.
    """

    what: str
    seconds: float | None = None
    ends: float | None = None
    option: str = ""
    fails: bool = True


@dataclass(frozen=True)
class _Call:
    """A library's function that waits with a time-out, and the paths from its variables to what is to be known.

    ``began`` (``time.time()``) or ``ends`` (``time.monotonic()``) give the deadline; ``is_timed``: ours around it does.
    It waits only as long as ``until`` is ``None``.
    """

    name: str
    seconds: str = "timeout"
    began: str = ""
    ends: str = ""
    is_timed: bool = False
    until: str = ""
    option: str = ""
    fails: bool = True


_C10D = "torch.distributed.distributed_c10d"
_CALLS = {
    ("ray._private.worker", "get"): _Call("ray.get", is_timed=True),
    ("ray._private.worker", "wait"): _Call("ray.wait", is_timed=True, fails=False),
    ("ray.util.client.worker", "get"): _Call("ray.get", ends="deadline"),
    ("ray.util.client.worker", "wait"): _Call("ray.wait", fails=False),
    (_C10D, "init_process_group"): _Call("init_process_group", is_timed=True),
    (_C10D, "_new_process_group_helper"): _Call("new process group", is_timed=True),
    (_C10D, "_store_based_barrier"): _Call("store barrier of a new process group", began="start"),
    (_C10D, "monitored_barrier"): _Call("monitored_barrier"),
    (f"{_ELASTIC}.agent.server.api", "_exit_barrier"): _Call(
        "torchrun's exit barrier", "self._exit_barrier_timeout", "start"
    ),
    (f"{_ELASTIC}.utils.store", "barrier"): _Call("torch elastic's barrier", "barrier_timeout"),
    (f"{_ELASTIC}.utils.store", "synchronize"): _Call("torch elastic's exchange of ranks"),
    (f"{_ELASTIC}.rendezvous.dynamic_rendezvous", "next_rendezvous"): _Call(
        "torchrun's rendezvous",
        "self._settings.timeout.join",
        ends="deadline",
        option=f"{_RENDEZVOUS_OPTION} join_timeout=…",
    ),
    ("verl.single_controller.ray.base", "_init_with_resource_pool"): _Call(
        "verl's wait for its register center",
        "self._ray_wait_register_center_timeout",
        "start_time",
        until="register_center_actor",
    ),
}
_CHANGE_OF_GROUPS = ("rankscope.agent.collectives", "change")
_RAY_EVENTS = ("ray.get", "ray.wait")

_ray_began: dict[int, tuple[int, float]] = {}  # by thread: the id of its frame, and when
_Key = tuple[int, int, str]
_followed: dict[_Key, float | None] = {}
_looked_at = -_RECENT_SECONDS


def raise_environment() -> None:
    """Raise what is read from the environment, in this process and its children; what somebody has set stays."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)


def install() -> None:
    """Note when ``ray.get`` and ``ray.wait`` begin: both call Ray's profiler first, so no frame of ours is theirs."""
    imports.after_import("ray._private.profiling", _time_ray)


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Serves the question ``limits``: what this process waits in. ``left`` is seconds, ``None`` where nobody can know.

    With ``paused``, also what others hold against a process that does not answer.
    """
    global _looked_at
    now = time.monotonic()
    before = dict(_followed)
    is_recent = now - _looked_at < _RECENT_SECONDS
    _followed.clear()
    found: list[Limit] = []
    threads = {thread.ident: thread for thread in threading.enumerate()}
    running = sys._current_frames()
    for gone in set(_ray_began) - set(running):
        _ray_began.pop(gone, None)
    for ident, innermost in running.items():
        if stacks.is_ours(threads.get(ident)):
            continue
        limit, frame = _waits_in(ident, innermost)
        if limit is not None and limit.ends is None and limit.seconds is not None:
            key = (ident, id(frame), limit.what)
            ends = before.get(key, _looked_at + limit.seconds if is_recent else None)
            # Well past its end and still there: it is another one, on the same line.
            _followed[key] = ends = None if ends is None or ends < now - 1 - _RECENT_SECONDS else ends
            limit = replace(limit, ends=ends)
        found += [] if limit is None else [limit]
        if arguments.get("paused"):
            found += _first(_keep_alive(frame) for frame in _outwards(innermost))
    if arguments.get("paused"):
        found += _heartbeat_monitor()
    _looked_at = now
    return {"limits": [_told(limit, now) for limit in found if (limit.seconds or 0) < _OUTLIVES_A_PAUSE]}


def _told(limit: Limit, now: float) -> dict[str, Any]:
    left = None if limit.ends is None else max(0.0, limit.ends - now)
    return {"what": limit.what, "seconds": limit.seconds, "left": left, "option": limit.option, "fails": limit.fails}


# --- threads that wait ----------------------------------------------------------------------------------


def _waits_in(ident: int, innermost: FrameType) -> tuple[Limit | None, FrameType]:
    """The innermost wait of a thread whose end is known, else its innermost wait; and the frame that waits."""
    found: tuple[Limit, FrameType] | None = None
    timed: Limit | None = None  # to be ended by the next frame of ours
    for frame in _outwards(innermost):
        place = (str(frame.f_globals.get("__name__", "")), frame.f_code.co_name)
        if place == _CHANGE_OF_GROUPS and timed is not None:
            began = _local(frame, "_began")
            return replace(timed, ends=None if began is None else began + timed.seconds), frame
        call = _CALLS.get(place)
        limit = None if call is None else _limit(call, frame, ident)
        if call is None or limit is None:
            continue
        if limit.ends is not None:
            return limit, frame
        found = found or (limit, frame)
        timed = timed or (limit if call.is_timed else None)
    return found or (_store_wait(innermost), innermost)


def _limit(call: _Call, frame: FrameType, ident: int) -> Limit | None:
    seconds = _seconds(_local(frame, call.seconds))
    if (
        seconds is None
        or seconds <= (0 if call.fails else _A_POLL_SECONDS)
        or (call.until and _local(frame, call.until) is not None)
    ):
        return None
    ends = None
    if call.began:
        began = _local(frame, call.began)
        ends = None if began is None else began - time.time() + time.monotonic() + seconds
    elif call.ends:
        ends = _local(frame, call.ends)
    elif ident in _ray_began and _ray_began[ident][0] == id(frame):
        ends = _ray_began[ident][1] + seconds
    return Limit(f"{call.name}(timeout={seconds:g})", seconds, ends, call.option, call.fails)


def _store_wait(innermost: FrameType) -> Limit | None:
    from rankscope.agent import store_waits

    wait = None
    with suppress(Exception):  # the source is not what runs, or its objects are odd
        wait = store_waits.of_frame(innermost)
    if wait is None:
        return None
    name, seconds = wait
    return Limit(name if seconds is None else f"{name}(timeout={seconds:g})", seconds)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _local(frame: FrameType, path: str) -> Any:
    """What a dotted path from a frame's variables leads to; ``None`` where it leads nowhere."""
    from rankscope.postmortem import dump

    name, *attributes = path.split(".")
    value = dump.variables_of(frame).get(name)
    for attribute in attributes:
        value = getattr(value, attribute, None)
    return value


def _seconds(value: Any) -> float | None:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return float(value) if isinstance(value, (int, float)) else None


def _time_ray(module: ModuleType) -> None:
    own: Callable[..., Any] = module.profile

    def profile(event_type: str, *args: Any, **kwargs: Any) -> Any:
        if event_type in _RAY_EVENTS:
            _ray_began[threading.get_ident()] = (id(sys._getframe(1)), time.monotonic())
        return own(event_type, *args, **kwargs)

    module.profile = profile  # type: ignore[attr-defined]


# --- what others hold against a process that is paused ---------------------------------------------------


def _keep_alive(frame: FrameType) -> Limit | None:
    """torchrun itself is paused: the other agents count it as dead when its heartbeats stay away."""
    if frame.f_code.co_name != "_invoke_run" or not str(frame.f_globals.get("__name__")).startswith(_ELASTIC):
        return None
    handler = _local(frame, "rdzv_handler")
    with suppress(AttributeError, TypeError, KeyError):  # the static rendezvous has none
        state, settings = handler._state_holder.state, handler._settings
        seconds = (settings.keep_alive_interval * settings.keep_alive_max_attempt).total_seconds()
        age = datetime.now(timezone.utc) - state.last_heartbeats[handler._this_node]
        if len(state.participants) > 1:
            ends = time.monotonic() + seconds - age.total_seconds()
            option = f"{_RENDEZVOUS_OPTION} keep_alive_max_attempt=…"
            return Limit(f"torchrun's keep-alive({seconds:g})", seconds, ends, option)
    return None


def _heartbeat_monitor() -> list[Limit]:
    """NCCL's monitor ends a process whose watchdog is stuck; when that began is its own secret."""
    if os.environ.get("TORCH_NCCL_ENABLE_MONITORING", "1").lower() in ("0", "false", "no", "n"):
        return []
    if all(group["backend"] != "ProcessGroupNCCL" for group in collectives.answer({})["groups"]):
        return []
    text = os.environ.get(_HEARTBEAT, "")
    seconds = float(text) if text.isdecimal() else _HEARTBEAT_SECONDS
    return [Limit(f"NCCL's heartbeat monitor({seconds:g})", seconds, None, _HEARTBEAT)]


def _first(limits: Iterator[Limit | None]) -> list[Limit]:
    return next(([limit] for limit in limits if limit is not None), [])
