"""Exceptions that end this process's work, seen where they were raised: kept, told to the hub, held if it says so.

Nothing is traced and nothing armed before the raise. Every way out has its own hook, and none adds a frame to
a traceback: ``sys.excepthook``, ``threading.excepthook``; for ``multiprocessing`` its exit function, which runs while
the exception passes; for Ray tasks and actor methods the place where Ray would start its own post-mortem debugger; for
a DataLoader's worker the wrapper that carries the exception to its parent.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from queue import Empty, SimpleQueue
from types import ModuleType, TracebackType
from typing import Any

from rankscope.agent import agent as agents
from rankscope.agent import ending, exits, guards, imports, stacks
from rankscope.escapes import without_escapes
from rankscope.wire import messages as m

DELAY_SECONDS = 2.0
"""How long a death is delayed at most, unless the hub holds it."""
KEEP_SECONDS = 1.0
_MAX_ALIKE = 3
_ENDS_BY_EXIT = ("uncaught",)
_ARM_SECONDS = 20.0
_LINK_SECONDS = 1.2
_VERDICT_SECONDS = 0.8
_RAY_LIBRARIES = ("/ray/data/", "/ray/serve/")

_lock = threading.Lock()
# The last failure told, by identity and time: to hold the exception would keep all its frames' values alive.
_told: tuple[int, float] | None = None
_SAME_SECONDS = 5.0
_alike: Counter[tuple[str, str, int]] = Counter()


def install() -> None:
    """Watch every way out of this process."""
    _watch_interpreter()
    exits.install(_told_of, _is_wanted)
    imports.after_import("multiprocessing.util", _watch_multiprocessing)
    imports.after_import("torch._utils", _watch_data_loader)
    imports.after_import("ray.util.rpdb", _watch_ray)


def now(_arguments: dict[str, Any]) -> dict[str, Any]:
    """The agent's answer to ``dump``: where every thread is, since another member has failed."""
    from rankscope.postmortem import dump  # loaded in a process that needs it, not in every one

    return dump.of_now(stacks.is_own_file, deadline=time.monotonic() + KEEP_SECONDS)


def forget() -> None:
    """Another process begins: what was told and noted in its parent is not its own."""
    global _told
    _told = None
    _alike.clear()
    exits.forget()


def failed(error: BaseException | None, how: str) -> None:
    """This exception has ended some work here. Returns within two seconds unless the hub holds it. Never raises."""
    global _told
    until = time.monotonic() + DELAY_SECONDS
    is_left = isinstance(error, SystemExit) and how in _ENDS_BY_EXIT and exits.text_of(error.code)
    if is_left and error is not None:
        error = exits.cause_of(error)
    if error is None or (isinstance(error, (SystemExit, KeyboardInterrupt, GeneratorExit)) and not is_left):
        return
    agent: Any = agents.current
    with _lock:
        if _was_told(id(error)) or agent is None or not agent.await_link(_LINK_SECONDS):
            return
        _told = (id(error), time.monotonic())
    try:
        _tell(agent, error, how, until)
    except Exception as e:  # nothing of ours may change how a job fails
        agent.notice("warning", f"a failure could not be kept: {e!r}")


def _was_told(which: int | None = None) -> bool:
    """Whether that exception, or any, was told just now: several hooks may see the same one on its way out."""
    return _told is not None and which in (None, _told[0]) and time.monotonic() - _told[1] < _SAME_SECONDS


def leaves() -> None:
    """The process ends. By ``sys.exit`` with a code: tell that. Never raises."""
    left = exits.last()
    agent: Any = agents.current
    if left is None or agent is None or not agent.is_linked or agent.facts.role == "idle" or _was_told():
        return
    about, kept = left
    if ending.why() == about["text"]:
        _ask(agent, about, 0.0, lambda: kept, time.monotonic() + _VERDICT_SECONDS)


def _tell(agent: Any, error: BaseException, how: str, until: float) -> None:
    from rankscope.postmortem import dump

    raised = time.monotonic()
    about = _about(error, how)
    key = (about["type"], about["path"], about["line"])
    _alike[key] += 1
    if _alike[key] > _MAX_ALIKE:
        if _alike[key] == _MAX_ALIKE + 1:
            agent.notice("info", f"further failures like {about['text']} at {key[1]}:{key[2]} are not kept")
        return

    def keep() -> dict[str, Any]:
        deadline = min(raised + KEEP_SECONDS, until - _VERDICT_SECONDS / 2)
        return dump.of_exception(error, stacks.is_own_file, deadline=deadline)

    if not _ask(agent, about, time.monotonic() - raised, keep, until):
        return
    if agent.arm_here(f"post-mortem of {about['text']}", _ARM_SECONDS):
        _hold(error)


def _ask(agent: Any, about: dict[str, Any], age: float, keep: Callable[[], dict[str, Any]], until: float) -> bool:
    """Tell the hub of a failure at once, then what ``keep`` makes of it; whether this thread is to be held.

    The answer is awaited until that moment (monotonic).
    """
    verdict: SimpleQueue[bool] = SimpleQueue()
    ask = id(verdict)
    agent.verdicts[ask] = verdict
    agent.send(m.Failed(ask=ask, age=age, about=about))
    dump = keep() if agent.settings is None or agent.settings.keeps_failures else {}
    agent.send(m.FailedDump(ask=ask, dump=dump))
    try:
        return verdict.get(timeout=max(0.0, until - time.monotonic()))
    except Empty:
        return False
    finally:
        del agent.verdicts[ask]


def _about(error: BaseException, how: str) -> dict[str, Any]:
    """What is told of a failure at once, before its dump."""
    from rankscope.postmortem import dump, values

    path, line, name = _place(error.__traceback__)
    return {
        "type": values.type_name(type(error)),
        "message": without_escapes(dump.message_of(error)),
        "text": exits.text_of(error.code) if isinstance(error, SystemExit) else ending.described(error),
        "path": path,
        "line": line,
        "name": name,
        "how": how,
        "isEcho": _is_echo(error),
        "exits": _exits(error),
        "wantsPause": os.environ.get("RAY_DEBUG_POST_MORTEM", "0") == "1",
    }


def _told_of(error: BaseException, how: str) -> exits.Told:
    from rankscope.postmortem import dump

    return _about(error, how), dump.of_exception(error, stacks.is_own_file, deadline=time.monotonic() + KEEP_SECONDS)


def _is_wanted() -> bool:
    agent: Any = agents.current
    return agent is not None and agent.facts.role != "idle" and agent.await_link(_LINK_SECONDS)


def _hold(error: BaseException) -> None:
    """Stop this thread in the debugger, in the raising frame, until somebody lets it go."""
    information = (type(error), error, error.__traceback__)
    guards.original("trigger_exception_handler")(information, as_uncaught=False)


def _place(trace: TracebackType | None) -> tuple[str, int, str]:
    """The innermost frame of the person's own code, else the innermost."""
    place = ("", 0, "")
    has_own = False
    while trace is not None:
        code = trace.tb_frame.f_code
        is_own = stacks.is_own_file(code.co_filename)
        if is_own or not has_own:
            place = (code.co_filename, trace.tb_lineno, code.co_name)
            has_own = has_own or is_own
        trace = trace.tb_next
    return place


def _is_echo(error: BaseException) -> bool:
    """Whether it merely tells of another process's failure."""
    modules = {base.__module__.partition(".")[0] + "." + base.__qualname__ for base in type(error).__mro__}
    return bool(
        modules
        & {
            "ray.RayTaskError",
            "ray.RayActorError",
            "ray.ActorDiedError",
            "torch.ChildFailedError",
            "torch.ProcessException",
            "torch.ProcessRaisedException",
            "torch.ProcessExitedException",
        }
    )


def _exits(error: BaseException) -> dict[str, int]:
    """What a launcher's error says of its children: pid → exit code, below 0 for a signal."""
    told: list[tuple[Any, Any]] = [(getattr(error, "error_pid", None), getattr(error, "exit_code", None))]
    failures = getattr(error, "failures", None)
    if isinstance(failures, dict):
        told += [(getattr(one, "pid", None), getattr(one, "exitcode", None)) for one in failures.values()]
    return {str(pid): code for pid, code in told if isinstance(pid, int) and isinstance(code, int)}


# --- the ways out ---------------------------------------------------------------------------------


def _watch_interpreter() -> None:
    own, own_of_threads = sys.excepthook, threading.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        failed(error, "uncaught")
        own(kind, error, trace)

    def thread_excepthook(arguments: threading.ExceptHookArgs) -> None:
        failed(arguments.exc_value, "uncaught in a thread")
        own_of_threads(arguments)

    sys.excepthook = excepthook
    threading.excepthook = thread_excepthook


def _watch_multiprocessing(module: ModuleType) -> None:
    """``Process`` prints what its target raised and sets the exit code, calling its exit function in between.

    From Python 3.13 on it does not, but prints by ``traceback.print_exc``.
    """
    own: Any = module._exit_function

    def _exit_function(*args: Any, **kwargs: Any) -> Any:
        error = sys.exc_info()[1]
        failed(error, "uncaught")
        if error is not None and not isinstance(error, KeyboardInterrupt):
            ending.note(exits.cause_of(error))
        return own(*args, **kwargs)

    module._exit_function = _exit_function  # type: ignore[attr-defined]
    if sys.version_info >= (3, 13):
        _watch_printing()


def _watch_printing() -> None:
    import traceback  # dear, and needed by the latest Pythons alone

    own = traceback.print_exc
    of_process = "process.py", "_bootstrap"

    @functools.wraps(own)
    def print_exc(*args: Any, **kwargs: Any) -> None:
        code = sys._getframe(1).f_code
        if (os.path.basename(code.co_filename), code.co_name) == of_process:
            error = sys.exc_info()[1]
            failed(error, "uncaught")
            ending.note(error)
        own(*args, **kwargs)

    traceback.print_exc = print_exc


def _watch_data_loader(module: ModuleType) -> None:
    own: Any = getattr(module, "ExceptionWrapper", None)
    if own is None:
        return
    begin = own.__init__

    def __init__(self: Any, exc_info: Any = None, where: str = "in background") -> None:  # noqa: N807 - it replaces one
        failed(sys.exc_info()[1], where)
        begin(self, exc_info, where)

    own.__init__ = __init__


def _watch_ray(module: ModuleType) -> None:
    """Ray asks whether its post-mortem debugger is wanted, and starts it, inside its own ``except``."""
    own: Any = getattr(module, "_is_ray_debugger_post_mortem_enabled", None)
    if own is None:
        return

    def _is_ray_debugger_post_mortem_enabled() -> bool:
        caller = sys._getframe().f_back  # none where Ray's C++ threads run the tasks
        if caller is not None and any(library in caller.f_code.co_filename for library in _RAY_LIBRARIES):
            return bool(own())  # it changes what they raise
        return True

    def _post_mortem(*_args: Any, **_kwargs: Any) -> None:
        failed(sys.exc_info()[1], "raised in a Ray task")

    module._is_ray_debugger_post_mortem_enabled = _is_ray_debugger_post_mortem_enabled  # type: ignore[attr-defined]
    module._post_mortem = _post_mortem  # type: ignore[attr-defined]
