"""The first display of a 1 GB CPU tensor, and one read of it: `torch.sum`, with torch's threads as they are for both.

Both are taken in the same process, new for each sample: first the display, which is what debugpy's provider calls, with
time enough to end; then the read. The tensor has been written, so that neither pays for its pages.
"""

import json
import subprocess
import sys

from _measure import environment

_PROGRAM = """
import json, sys, time, torch
from rankscope.agent import tensors

def took(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began

x = torch.arange(1 << 28, dtype=torch.float32)
if sys.argv[1] == "nan":
    x[:: 1 << 12] = float("nan")
torch.sum(x[: 1 << 20])  # torch has its threads
print(json.dumps([took(lambda: tensors.text(x, 60.0)), took(lambda: torch.sum(x))]))
"""
_ROUNDS = 7


def _samples(kind):
    """Seconds of a display and of a read, of a new process each."""
    for _ in range(_ROUNDS):
        argv = [sys.executable, "-c", _PROGRAM, kind]
        yield json.loads(subprocess.run(argv, env=environment(), capture_output=True, check=True, timeout=120).stdout)


async def tensor_show_ms():
    """Milliseconds until the line of a healthy tensor is there."""
    return [show * 1000 for show, _ in _samples("healthy")]


async def tensor_show_vs_read():
    """The same over one read of it."""
    return [show / read for show, read in _samples("healthy")]


async def tensor_show_nan_vs_read():
    """With a NaN in every piece that is read."""
    return [show / read for show, read in _samples("nan")]
