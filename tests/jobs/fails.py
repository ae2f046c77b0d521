"""Every way in which a process of a job without torch or Ray can die: ``python fails.py HOW [WHERE]``.

WHERE is ``driver``, or how a child of it is started: ``spawn``, ``fork`` or ``rank`` (RANK in its environment).
"""

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading


class Batch:
    def __init__(self, index):
        self.index = index

    def __repr__(self):
        raise RuntimeError("a repr of the person's own")

    @property
    def slow(self):
        threading.Event().wait(60)


def step(how, index):
    batch = Batch(index)
    loss = index * 0.5
    die(how, batch, loss)


def die(how, batch, loss):
    if how == "raise":
        raise ValueError(f"bad batch {batch.index}")  # @bp raise
    if how == "chain":
        try:
            {}["key"]
        except KeyError as error:
            raise RuntimeError("step failed") from error  # @bp chain
    if how == "group":
        raise ExceptionGroup("two of them", [ValueError("first"), KeyError("second")])  # noqa: F821  # @bp group
    if how == "coloured":
        raise ValueError("\x1b[31mred\x1b[0m")
    if how == "thread":
        thread = threading.Thread(target=die, args=("raise", batch, loss), name="loader")
        thread.start()
        thread.join()
    if how == "deep":
        sys.setrecursionlimit(20_000)
        dive(0)
    if how == "exit":
        sys.exit(3)  # @bp exit
    if how == "segv":
        ctypes.string_at(0)  # @bp segv
    if how == "abort":
        os.abort()  # @bp abort
    if how in ("SIGTERM", "SIGKILL"):
        print("READY", os.getpid(), flush=True)
        hang(getattr(signal, how))


def hang(number):
    hold = os.environ.get("HOLD_FILE")
    while hold and not os.path.exists(hold):
        threading.Event().wait(0.02)  # @bp hang
    os.kill(os.getpid(), number)  # @bp kill
    threading.Event().wait()


def dive(depth):
    if depth == 10_000:
        raise ValueError("deep down")  # @bp deep
    dive(depth + 1)


def main(how, where):
    if where in ("spawn", "fork"):
        process = multiprocessing.get_context(where).Process(target=step, args=(how, 7))
        process.start()
        process.join()
        print("RESULT child ended with", process.exitcode)
        return 1
    if where == "rank" and "RANK" not in os.environ:
        environment = {**os.environ, "RANK": "2", "WORLD_SIZE": "4"}
        code = subprocess.run([sys.executable, *sys.argv], env=environment).returncode
        print("RESULT rank ended with", code)
        return 0
    step(how, 7)
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "driver")
    if status:
        sys.exit(status)
