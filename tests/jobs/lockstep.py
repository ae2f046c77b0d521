"""A torchrun worker for run control: a loop with a collective, and what is asked for by arguments.

``lockstep.py ddp`` builds a DDP model first; ``spin`` runs Python without a collective until a file ``GO`` is there,
and of these ``early`` lets rank 3 leave before, ``pipe`` lets rank 1 wait for a byte in a C call.
"""

import os
import sys
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist

MODES = sys.argv[1:]
FOLDER = Path(os.environ.get("LOCKSTEP_FOLDER", "."))


def step(weights, number):
    gradient = torch.ones(4) * number - weights  # @bp gradient
    dist.all_reduce(gradient)  # @bp reduce
    weights = weights + 0.001 * gradient  # @bp update
    return weights


def build():
    torch.manual_seed(dist.get_rank())
    model = torch.nn.Linear(4, 2)  # @bp model
    wrapped = torch.nn.parallel.DistributedDataParallel(model)  # @bp ddp
    return float(wrapped.module.bias.sum())  # @bp wrapped


def tick():
    while True:
        time.sleep(0.01)


def read():
    """Wait in a C call; beside it another thread goes on running Python."""
    threading.Thread(target=tick, daemon=True).start()
    with (FOLDER / "pipe").open("rb", buffering=0) as pipe:
        print("RESULT reads", flush=True)
        byte = pipe.read(1)  # @bp read
    return byte


def spin(rank):
    if "early" in MODES and rank == 3:
        return rank  # @bp leave
    if "pipe" in MODES and rank == 1:
        read()
    while not (FOLDER / "GO").exists():
        time.sleep(0.01)  # @bp spin
    return rank  # @bp alone


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if "spin" in MODES:
        spin(rank)
        return
    bias = build() if "ddp" in MODES else 0.0
    weights = torch.zeros(4)
    for number in range(3):
        weights = step(weights, number)
    print(f"RESULT rank={rank} weights={float(weights.sum()):.6f} bias={bias:.6f}\n", end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
