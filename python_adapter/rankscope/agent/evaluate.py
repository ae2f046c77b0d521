"""One expression in a stopped frame, aside of its thread: the rank can be continued whatever the expression does.

debugpy evaluates ``start(…)`` in the frame, which copies the frame's names and returns at once. A helper thread then
evaluates, another one answers the hub: with what it came to, or when the time is over with that. An expression that is
late is ended at its next line or call; one that is stuck in C goes on alone, and is counted.
"""

from __future__ import annotations

import contextvars
import json
import sys
import threading
from contextlib import suppress
from types import CodeType
from typing import Any

from rankscope.agent import agent as agents
from rankscope.agent import delta, nets, shown
from rankscope.agent.debugger import hide_from_debugger
from rankscope.wire import messages as m

MAX_STUCK = 4
_stuck: list[threading.Thread] = []


def start(reply: int, question: str) -> None:
    """Begin, for the frame that calls this; the hub hears under the number ``reply``.

    ``question`` is JSON: ``expression``, ``seconds``, and ``keep`` (a word to keep a tensor by, for its differences).
    """
    _Evaluation(reply, json.loads(question), dict(sys._getframe(1).f_globals)).begin()


class _Evaluation:
    """Owns its two threads: the one that answers ends in time, the one that evaluates when the expression does."""

    def __init__(self, reply: int, question: dict[str, Any], names: dict[str, Any]) -> None:
        self._reply_number = reply
        self._seconds = float(question["seconds"])
        self._expression = str(question["expression"])
        self._keep = str(question.get("keep") or "")
        self._names = names
        self._context = contextvars.copy_context()
        self._torch_state = _torch_state()
        self._has_ended = threading.Event()
        self._net = nets.Net()
        self._answer: shown.Answer = {}
        self._thread = threading.Thread(target=self._evaluate, name="rankscope-evaluate", daemon=True)

    def begin(self) -> None:
        watcher = threading.Thread(target=self._watch, name="rankscope-answer", daemon=True)
        for thread in (self._thread, watcher):
            hide_from_debugger(thread)
        watcher.start()

    def _watch(self) -> None:
        _stuck[:] = [thread for thread in _stuck if thread.is_alive()]
        if len(_stuck) >= MAX_STUCK:
            self._reply(_late(f"{len(_stuck)} expressions that were asked before are still stuck in this process"))
            return
        self._thread.start()
        if self._has_ended.wait(self._seconds):
            self._reply(self._answer)
            return
        self._reply(_late(f"not evaluated within {self._seconds:g} s; it was told to stop"))
        if not self._net.close(self._thread):
            _stuck.append(self._thread)

    def _reply(self, body: shown.Answer) -> None:
        agent = agents.current
        if agent is not None:
            agent.send(m.Reply(ask=self._reply_number, body=body))

    def _evaluate(self) -> None:
        with suppress(nets.TooLate):
            self._answer = self._context.run(self._found)
            self._has_ended.set()

    def _found(self) -> shown.Answer:
        try:
            self._torch_state()
            code: CodeType = compile(self._expression, "<expression>", "eval", dont_inherit=True)
            with self._net.cast():
                value = eval(code, self._names)  # noqa: S307 - a debugger evaluates
                answer = shown.answer(value)
            if self._keep and answer["kind"] == "tensor":
                delta.keep(self._keep, value)
            return answer
        except nets.TooLate:
            raise
        except BaseException as e:  # exit() in an expression is an answer, too
            return shown.failure(e)


def _late(why: str) -> shown.Answer:
    return {"kind": "late", "text": why, "type": ""}


def _torch_state() -> Any:
    """What torch keeps per thread and an expression may depend on, to be set in another thread."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "is_grad_enabled"):
        return lambda: None
    is_grad_enabled = torch.is_grad_enabled()
    cuda: Any = torch.cuda
    stream = cuda.current_stream() if cuda.is_initialized() else None

    def apply() -> None:
        torch.set_grad_enabled(is_grad_enabled)
        if stream is not None:
            cuda.set_stream(stream)  # and its device

    return apply
