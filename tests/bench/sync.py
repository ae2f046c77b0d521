"""What it costs to know that all ranks have the same tensors. `npm run bench -- sync KEY ...` runs some keys."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _measure import PROGRAMS, Table, environment

PROGRAM = PROGRAMS / "sync.py"
PAIRS = 9
SECONDS = 600


def cpu_vs_read_once():
    """The digest of 1 GB of parameters over `torch.sum` of them, one thread."""
    import torch

    torch.set_num_threads(1)
    return _against_sum([torch.nn.Parameter(torch.randn(1 << 22)) for _ in range(64)], lambda: None)


def gpu_vs_read_once():
    """The same on a device."""
    import torch

    tensors = [torch.nn.Parameter(torch.randn(1 << 22, device="cuda")) for _ in range(64)]
    return _against_sum(tensors, torch.cuda.synchronize)


def _against_sum(tensors, settle):
    import torch

    from rankscope.checks.fingerprint import line
    from rankscope.checks.structure import entries

    def timed(work):
        settle()
        began = time.perf_counter()
        work()
        settle()
        return time.perf_counter() - began

    named = dict(enumerate(tensors))
    ratios = []
    with torch.no_grad():
        for _ in range(PAIRS + 1):
            read = timed(lambda: [tensor.sum() for tensor in tensors])
            ratios.append(timed(lambda: line(entries(named))) / read)
    return ratios[1:]


def on_ranks(key, ranks):
    """What rank 0 of so many measured."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "samples"
        argv = [*torchrun, str(PROGRAM), key, str(output)]
        subprocess.run(argv, env=environment(OMP_NUM_THREADS="1"), check=True, timeout=SECONDS)
        return json.loads(output.read_text())


# Each measure with unit and what it is to reach.
KEYS = [
    ("cpu_vs_read_once", cpu_vs_read_once, "x", "<= 1.25"),
    ("gpu_vs_read_once", gpu_vs_read_once, "x", "<= 1.4"),
    ("vs_sha1", lambda: on_ranks("vs_sha1", 4), "x", ">= 5"),
    ("vs_allgather", lambda: on_ranks("vs_allgather", 4), "x", ">= 10"),
    ("step_overhead_100", lambda: on_ranks("step_overhead_100", 2), "x", "<= 1.01"),
    ("locate_ms", lambda: on_ranks("locate_ms", 4), "ms", "<= 800"),
]


def has_gpu():
    import torch

    return torch.cuda.is_available()


def main(names):
    unknown = set(names) - {key for key, *_ in KEYS}
    if unknown:
        sys.exit(f"no key is called {', '.join(sorted(unknown))}")
    table = Table("sync: whether all ranks have the same tensors")
    for key, measure, unit, target in KEYS:
        if names and key not in names:
            continue
        if key.startswith("gpu") and not has_gpu():
            table.lack(key, f"{target}; not run: no GPU here")
            continue
        try:
            table.add(key, measure(), unit, target)
        except Exception as error:  # the other keys are wanted all the same
            table.lack(key, f"{type(error).__name__}: {error}")
    table.show()


if __name__ == "__main__":
    main(sys.argv[1:])
