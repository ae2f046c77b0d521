"""Time-outs of process groups are raised while somebody may pause a rank, and given back afterwards.

Every group made or found in this process, sub-groups and the helper group of
``TORCH_DISTRIBUTED_DEBUG=DETAIL`` included. A time-out counts as raised only when it
reads back so. An operation that waits already keeps the time-out it began with.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import time
from datetime import timedelta
from types import ModuleType
from typing import Any

from rankscope.agent import breaks, imports

RAISED = timedelta(days=7)
_CHANGES = (
    "init_process_group",
    "_new_process_group_helper",
    "split_group",
    "shrink_group",
    "destroy_process_group",
    "_abort_process_group",
)

_lock = threading.RLock()
_originals: dict[int, tuple[Any, timedelta]] = {}
_helpers: list[tuple[Any, Any]] = []  # (backend, its helper)
_module: Any = None
_is_any_armed = False


def install() -> None:
    """Follow torch's process groups as soon as they can exist."""
    imports.after_import("torch.distributed.distributed_c10d", _wrap)


def raise_all() -> None:
    """Raise every group's time-out that is not raised yet, where the job is interactive."""
    agent = _agent()
    settings = agent.settings if agent is not None else None
    if _module is None or settings is None or not settings.raise_timeouts:
        return
    with _lock:
        for name, backend in _backends():
            if id(backend) not in _originals and not _raise(backend):
                kind = type(backend).__name__
                text = f"the time-out of process group {name} ({kind}) could not be raised: a pause may end it"
                breaks.say_once(f"timeout {name} {kind}", text)


def on_released() -> None:
    """The member was let go. While its hub is there, others may still be paused: then the hub says when."""
    global _is_any_armed
    if not getattr(_agent(), "is_linked", False):
        _is_any_armed = False
        restore_all()


def restore_all() -> None:
    """Give every raised group the time-out that it had."""
    with _lock:
        for backend, original in _originals.values():
            with contextlib.suppress(Exception):
                backend._set_default_timeout(original)
        _originals.clear()


def may_be_paused() -> bool:
    """Whether this process or, by the hub's word, any other of the job has the debugger: somebody may be paused."""
    return _is_any_armed or bool(getattr(_agent(), "is_armed", False))


def forget() -> None:
    """In a forked child: the lock may be held by a thread that is gone."""
    global _lock
    _lock = threading.RLock()


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Serves the question ``timeouts``: with ``raised`` true or false, raises or restores first. Times in seconds."""
    global _is_any_armed
    if arguments.get("raised") is True:
        _is_any_armed = True
        raise_all()
    elif arguments.get("raised") is False:
        _is_any_armed = False
        restore_all()
    with _lock:
        groups = [
            {
                "group": name,
                "backend": type(backend).__name__,
                "seconds": _seconds(_read(backend)),
                "original": _seconds(_originals[id(backend)][1] if id(backend) in _originals else None),
            }
            for name, backend in _backends()
        ]
    return {"groups": groups}


def _wrap(module: ModuleType) -> None:
    global _module
    _module = module
    for name in _CHANGES:
        own = getattr(module, name, None)
        if own is not None:
            setattr(module, name, _then_look(own))
    _remember_helpers(module)


def _then_look(own: Any) -> Any:
    """After a change of the groups: let go of those that are gone, raise those that are new."""

    @functools.wraps(own)
    def change(*args: Any, **kwargs: Any) -> Any:
        _began = time.monotonic()  # pause_limits reads it from this frame
        made = own(*args, **kwargs)
        with contextlib.suppress(Exception):
            _let_go()
            raise_all()
        return made

    return change


def _let_go() -> None:
    """Drop our references to destroyed groups: torch closes a group when nobody holds it."""
    with _lock:
        live = {id(backend) for _, backend in _of_groups()}
        _helpers[:] = [pair for pair in _helpers if id(pair[0]) in live]
        live.update(id(helper) for _, helper in _helpers)
        for gone in set(_originals) - live:
            del _originals[gone]


def _remember_helpers(module: Any) -> None:
    """Under DETAIL every backend gets a gloo helper with a time-out of its own, which torch keeps out of reach."""
    own = getattr(module, "_create_process_group_wrapper", None)
    if own is None or not hasattr(module, "_ProcessGroupWrapper"):
        return

    @functools.wraps(own)
    def create(*args: Any, **kwargs: Any) -> Any:
        with _lock:
            wrapper = module._ProcessGroupWrapper

            def remember(backend: Any, helper: Any) -> Any:
                _helpers.append((backend, helper))
                return wrapper(backend, helper)

            module._ProcessGroupWrapper = remember
            try:
                return own(*args, **kwargs)
            finally:
                module._ProcessGroupWrapper = wrapper

    module._create_process_group_wrapper = create


def _backends() -> list[tuple[str, Any]]:
    """Every backend whose time-out counts, once, with its group's name."""
    return [*_of_groups(), *((f"{type(backend).__name__} helper", helper) for backend, helper in _helpers)]


def _of_groups() -> list[tuple[str, Any]]:
    """Every backend of every group of this process, unwrapped."""
    found: dict[int, tuple[str, Any]] = {}
    for group in list(getattr(getattr(_module, "_world", None), "pg_map", None) or ()):
        name = str(getattr(group, "group_name", "") or "?")
        for device in getattr(group, "_device_types", ()):
            backend = None
            with contextlib.suppress(Exception):  # a device type without a backend
                backend = group._get_backend(device)
            while backend is not None and hasattr(backend, "wrapped_pg"):
                backend = backend.wrapped_pg
            if backend is not None:
                found.setdefault(id(backend), (name, backend))
    return list(found.values())


def _raise(backend: Any) -> bool:
    before = _read(backend)
    if before is None:
        return type(backend).__name__ == "FakeProcessGroup"
    if before >= RAISED:
        return True
    try:
        backend._set_default_timeout(RAISED)
    except Exception:
        return False
    # Keeping the object keeps its id its own.
    _originals[id(backend)] = (backend, before)
    return _read(backend) == RAISED


def _read(backend: Any) -> timedelta | None:
    value = getattr(getattr(backend, "options", None), "_timeout", None)
    return value if isinstance(value, timedelta) else None


def _seconds(value: timedelta | None) -> float | None:
    return None if value is None else value.total_seconds()


def _agent() -> Any:
    return getattr(sys.modules.get("rankscope.agent.agent"), "current", None)
