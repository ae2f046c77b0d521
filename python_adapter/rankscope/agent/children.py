"""Children of members: a fork joins anew, and a dormant child is armed when a file with breakpoints runs in it."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any

from rankscope.agent import debugger, identity

_WELCOME_SECONDS = 2.0

_watched: frozenset[str] = frozenset()
_has_heard = threading.Event()
_is_watching = False
_has_audit_hook = False
_is_installed = False
_arm_seconds = 20.0
_busy = threading.local()
_keepers: list[Any] = []


def install(arm_timeout: float) -> None:
    """Let forked children join as members of their own."""
    global _is_installed, _arm_seconds
    _arm_seconds = arm_timeout
    if not _is_installed:
        _is_installed = True
        os.register_at_fork(after_in_child=_after_fork)


def watch_fork_server() -> None:
    """In multiprocessing's fork server, no member itself: its children join."""
    os.register_at_fork(after_in_child=_after_server_fork)


def on_files(files: list[str]) -> None:
    """The files that have breakpoints now (on the agent's thread)."""
    global _watched
    _watched = frozenset(os.path.realpath(file) for file in files)
    _has_heard.set()


def watch_execution() -> None:
    """From now on a module of a watched file arms this process before its first line runs."""
    global _is_watching, _has_audit_hook
    _is_watching = True
    if not _has_audit_hook:  # an audit hook cannot be removed
        _has_audit_hook = True
        sys.addaudithook(_on_audit)


def _on_audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "exec" or not _is_watching:
        return
    code = arguments[0]
    if not isinstance(code, CodeType) or code.co_name != "<module>" or getattr(_busy, "is_busy", False):
        return
    if not _is_installed_code(code.co_filename):
        _has_heard.wait(_WELCOME_SECONDS)
    elif not _watched:
        return
    if _watched and os.path.realpath(code.co_filename) in _watched:
        _arm(f"{os.path.basename(code.co_filename)} has a breakpoint")


def _is_installed_code(path: str) -> bool:
    return path.startswith(("<", sys.prefix, sys.base_prefix)) or "site-packages" in path or _OURS in path


_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _arm(why: str) -> None:
    """Arm on this thread, bounded; once is enough."""
    global _is_watching
    agent = _agent()
    if agent is None:
        return
    _busy.is_busy = True
    try:
        if agent.is_armed or agent.arm_here(why, _arm_seconds):
            _is_watching = False
    except Exception as e:
        agent.notice("error", f"this child could not be armed: {e!r}")
    finally:
        _busy.is_busy = False


def _after_fork() -> None:
    """In the forked child, before any user code: drop what was inherited and join anew."""
    try:
        _rejoin()
    except Exception as e:
        _complain(e)


def _after_server_fork() -> None:
    try:
        from rankscope.agent import bootstrap

        bootstrap.start_process()
        _stop_at_end()
    except Exception as e:
        _complain(e)


def _rejoin() -> None:
    from rankscope.agent import bootstrap, collectives, recorder, sync_check

    parent = _agent()
    if parent is None:
        return
    if _is_about_to_exec():
        parent.forget()
        debugger.clear_after_fork()
        return
    global _has_heard
    _has_heard = threading.Event()
    parent.forget()
    debugger.clear_after_fork()
    _let_connect_anew()
    collectives.forget()
    recorder.forget()
    sync_check.forget()
    facts = parent.facts.with_changes(role="child")
    known = _watched
    bootstrap.start_forked(identity.member, facts)
    _stop_at_end()
    if _is_loaded(known):
        _arm("a file with a breakpoint is loaded")


def _is_about_to_exec() -> bool:
    """Whether ``subprocess`` forked, for a ``preexec_fn``: what comes next is another program."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name in ("_execute_child", "_fork_exec")


def _let_connect_anew() -> None:
    """The child of an armed process inherits a debugger whose threads are gone; make debugpy start from nothing.

    pydevd does this for the children that it follows itself. Private, but without it such a child cannot stop.
    """
    for module_name, function_name, arguments in (
        ("pydevd", "settrace_forked", {"setup_tracing": False}),
        ("_pydevd_frame_eval.pydevd_frame_eval_main", "clear_thread_local_info", {}),
        ("_pydevd_sys_monitoring.pydevd_sys_monitoring", "reset_thread_local_info", {}),
    ):
        function = getattr(sys.modules.get(module_name), function_name, None)
        if function is not None:
            with contextlib.suppress(Exception):
                function(**arguments)


def _is_loaded(watched: frozenset[str]) -> bool:
    """Whether one of the files is loaded; looks at the names first, since ``realpath`` is dear."""
    names = {os.path.basename(file) for file in watched}
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return any(
        os.path.basename(file) in names and os.path.realpath(file) in watched for file in files if isinstance(file, str)
    )


def _stop_at_end() -> None:
    """A forked multiprocessing child ends without ``atexit``, but runs multiprocessing's own finalizers."""
    util: Any = sys.modules.get("multiprocessing.util")
    agent = _agent()
    if util is None or agent is None:
        return
    from rankscope.agent import bootstrap

    keeper = _Keeper()
    _keepers[:] = [keeper]
    util.register_after_fork(keeper, lambda _: util.Finalize(None, bootstrap.leave, exitpriority=100))


class _Keeper:
    """Something that multiprocessing can hold a weak reference to."""


def _agent() -> Any:
    return getattr(sys.modules.get("rankscope.agent.agent"), "current", None)


def _complain(error: Exception) -> None:
    if os.environ.get("RANKSCOPE_DEBUG"):
        os.write(2, f"rankscope: the forked child {os.getpid()} could not join: {error!r}\n".encode())
