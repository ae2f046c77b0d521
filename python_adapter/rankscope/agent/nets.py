"""What catches an expression on its thread: when it would start a collective, and when its time is over.

One rank alone in a collective would hang the others. Two nets see all of them: torch's dispatcher, which the
collectives of a DTensor pass too, and a trace of the thread's calls, for what makes and ends process groups. That trace
also ends what is late. (Python's own way to raise in another thread, ``PyThreadState_SetAsyncExc``, is none: while that
one is blocked in C, every traced thread of a Python 3.11 spins.)
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager as Context
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import Any

from rankscope.agent import stacks
from rankscope.agent.debugger import set_trace

_TRIES = 10
_TRY_SECONDS = 0.05
_NAMESPACES = ("c10d", "c10d_functional", "_c10d_functional", "_c10d_functional_autograd")
_C10D = "torch.distributed.distributed_c10d"
_QUESTIONS = ("get_", "is_")


class CollectiveRefusedError(RuntimeError):
    """The expression would have started a collective."""

    def __init__(self, name: str) -> None:
        super().__init__(f"an expression must start no collective and change no process group, as '{name}' would")


class TooLate(BaseException):
    """The expression's time is over. No error of its own, so that its ``except Exception`` lets it pass."""


class Net:
    """For one expression: :meth:`cast` on its thread, :meth:`close` from another one when its time is over."""

    def __init__(self) -> None:
        c10d = sys.modules.get(_C10D)
        self._file = getattr(c10d, "__file__", None)
        self._names = {name for name in getattr(c10d, "__all__", ()) if not name.startswith(_QUESTIONS)}
        self._is_over = False

    @contextmanager
    def cast(self) -> Iterator[None]:
        """Raise :class:`CollectiveRefusedError` or :class:`TooLate` inside."""
        before = sys.gettrace()
        with _dispatcher_net():
            set_trace(self._on_call)
            try:
                yield
            finally:
                set_trace(before)

    def close(self, thread: threading.Thread) -> bool:
        """End what the thread does inside, at its next line or call; whether it has ended within half a second."""
        self._is_over = True
        for _ in range(_TRIES):
            frame = sys._current_frames().get(thread.ident or 0)
            while frame is not None and not stacks.is_our_file(frame.f_code.co_filename):
                frame.f_trace = self._on_line
                frame = frame.f_back
            thread.join(_TRY_SECONDS)
            if not thread.is_alive():
                return True
        return False

    def _on_call(self, frame: FrameType, _event: str, _argument: Any) -> None:
        if self._is_over:
            raise TooLate
        code = frame.f_code
        if code.co_name in self._names and code.co_filename == self._file:
            raise CollectiveRefusedError(code.co_name)

    def _on_line(self, _frame: FrameType, _event: str, _argument: Any) -> Any:
        raise TooLate


def _dispatcher_net() -> Context[Any]:
    if _C10D not in sys.modules:
        return nullcontext()
    try:
        from torch.utils._python_dispatch import TorchDispatchMode
    except ImportError:  # an older torch: the calls are caught all the same
        return nullcontext()

    class Mode(TorchDispatchMode):  # type: ignore[misc]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # to skip it, torch would load it, which takes seconds

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if getattr(func, "namespace", "") in _NAMESPACES:
                raise CollectiveRefusedError(str(func))
            if any(not kind.__module__.startswith("torch._subclasses") for kind in types):
                return NotImplemented  # a DTensor, say, first shows what it is made of
            return func(*args, **(kwargs or {}))

    return Mode()
