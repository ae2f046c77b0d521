"""What keeps a thread from going on until its breakpoints are set."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

Task = tuple[int, str]


class Gate:
    """Closed while the hub is asked whether to wait; whoever waits at it is also the one that arms.

    debugpy must be connected on the waiting thread: inside ``sitecustomize`` a helper
    thread would deadlock on the import lock that the waiting one holds.
    """

    def __init__(self, *, is_closed: bool) -> None:
        self._state = threading.Condition()
        self._is_closed = is_closed
        self._waiting = 0
        self._task: Task | None = None
        self.question = 0

    def close(self) -> int:
        """A question goes to the hub: close until it is answered. Returns the question's number."""
        with self._state:
            self._is_closed = True
            self.question += 1
            return self.question

    def open(self) -> None:
        """Whoever waits goes on."""
        with self._state:
            self._is_closed = False
            self._task = None
            self._state.notify_all()

    def offer(self, task: Task) -> bool:
        """Give a waiting thread the arming to do; False when none waits."""
        with self._state:
            if not (self._waiting and self._is_closed):
                return False
            self._task = task
            self._state.notify_all()
            return True

    def wait(self, timeout: float, connect: Callable[[int, str], None]) -> bool:
        """Wait until it opens, arming meanwhile when asked to; False when that took more than ``timeout`` s."""
        deadline = time.monotonic() + timeout
        with self._state:
            self._waiting += 1
            try:
                while self._is_closed:
                    task, self._task = self._task, None
                    if task is not None:
                        self._state.release()
                        try:
                            connect(*task)
                        finally:
                            self._state.acquire()
                    elif (left := deadline - time.monotonic()) > 0:
                        self._state.wait(left)
                    else:
                        self._is_closed = False
                        return False
            finally:
                self._waiting -= 1
        return True
