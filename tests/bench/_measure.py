"""What the benchmarks share: programs that work on demand, interleaved pairs, a table and the closing JSON line."""

from __future__ import annotations

import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAMS = HERE / "programs"
PACKAGE = ROOT / "python_adapter"
sys.path[:0] = [str(PACKAGE), str(ROOT / "tests" / "python")]
_START_SECONDS = 60.0


def environment(**added):
    """This environment with RankScope importable, as it is after `pip install rankscope`."""
    paths = [str(PACKAGE), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path), **added}


def other_python(*versions):
    """The Python of `.venvs/<version>`, the first that is there, or None."""
    found = [ROOT / ".venvs" / version / "bin" / "python" for version in versions]
    if f"{sys.version_info[0]}.{sys.version_info[1]}" in versions:
        return sys.executable
    return next((str(python) for python in found if python.exists()), None)


class Listener:
    """A socket that `workload.py` processes connect to."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="rankscope-bench-")
        self.path = str(Path(self.folder.name) / "socket")
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self.path)
        self._socket.listen(64)
        self._socket.settimeout(_START_SECONDS)

    def accept(self):
        """The next process that connects."""
        return Worker(self._socket.accept()[0])

    def close(self):
        self._socket.close()
        self.folder.cleanup()


class Worker:
    """One `workload.py` process, at the other end of a socket: it does nothing until asked."""

    def __init__(self, connection):
        self._connection = connection
        self._file = connection.makefile("rw")
        self.pid = self.ask("pid")

    def ask(self, what, amount=0):
        """CPU seconds of its process for `amount` rounds of a workload, or what `pid` answers."""
        self._file.write(json.dumps([what, amount]) + "\n")
        self._file.flush()
        return json.loads(self._file.readline())

    def close(self):
        try:
            self._file.write("null\n")
            self._file.flush()
        except OSError:
            pass
        self._connection.close()


def calibrate(worker, what, seconds=0.05):
    """How many rounds take about so long."""
    amount = 1
    while worker.ask(what, amount) < seconds:
        amount *= 2
    return amount


def paired_ratio(plain, worker, what, amount, pairs=11):
    """The CPU time of `worker` over that of `plain`: the median over neighbouring slices of the same work."""
    worker.ask(what, amount)
    ratios = []
    for turn in range(pairs):
        first, second = (plain, worker) if turn % 2 else (worker, plain)
        took = {first: first.ask(what, amount), second: second.ask(what, amount)}
        ratios.append(took[worker] / took[plain])
    return statistics.median(ratios)


class Table:
    """Rows of median and spread, printed at the end with the JSON line."""

    def __init__(self, title):
        self.title = title
        self._rows = []
        self._keys = {}
        self._reasons = []

    def add(self, key, samples, unit, target=None, *, is_key=True, pick=statistics.median):
        """One number: the median of its samples (or what `pick` says), and where the middle half of the runs lay."""
        median = pick(samples)
        ordered = sorted(samples)
        low, high = ordered[len(ordered) // 4], ordered[-1 - len(ordered) // 4]
        self._rows.append((key, f"{median:.3f}", f"{low:.3f} .. {high:.3f}", str(len(samples)), unit, target or ""))
        if is_key:
            self._keys[key] = round(median, 4)

    def add_many(self, key, by_name, unit, targets):
        """One key that holds a number by name: a row each."""
        for name, samples in by_name.items():
            self.add(f"{key}.{name}", samples, unit, f"<= {targets[name]}", is_key=False)
        self._keys[key] = {str(name): round(statistics.median(samples), 4) for name, samples in by_name.items()}

    def lack(self, key, why):
        """A number that cannot be had here."""
        self._rows.append((key, "-", "-", "0", "", why))
        self._keys[key] = None

    def show(self):
        head = ("name", "median", "middle half", "n", "unit", "to reach")
        widths = [max(len(row[column]) for row in [head, *self._rows]) for column in range(len(head))]
        print(f"\n{self.title}")
        for row in [head, *self._rows]:
            print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        print(json.dumps(self._keys))


def start(argv, **added):
    """A process with its output thrown away, in a session of its own."""
    quiet = subprocess.DEVNULL if not os.environ.get("BENCH_VERBOSE") else None
    return subprocess.Popen(
        argv, env=environment(**added), stdin=subprocess.DEVNULL, stdout=quiet, stderr=quiet, start_new_session=True
    )


def stop(process):
    """End a process that `start` started, and its session, within a few seconds."""
    deadline = time.monotonic() + 8
    try:
        process.terminate()
        process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
