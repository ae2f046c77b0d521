"""Rank 2 of four fails while its peers are in an all_reduce; ``python fails_torch.py HOW`` for the other torch ways.

Under torchrun HOW comes from FAILS_BY: ``raise``, ``exit``, ``SIGKILL`` or ``segv``.
"""

import ctypes
import os
import signal
import sys
import threading

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset


def fail(how, step):
    loss = step * 0.5
    if how == "raise":
        raise ValueError(f"bad step {step} {loss}")  # @bp raise
    if how == "exit":
        sys.exit(3)
    if how == "segv":
        ctypes.string_at(0)  # @bp segv
    os.kill(os.getpid(), getattr(signal, how))


def train(how):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for step in range(3):
        if rank == 2 and step == 2:
            threading.Event().wait(1.5)  # its peers get into their all_reduce meanwhile
            fail(how, step)
        gradient = torch.ones(4) * rank
        dist.all_reduce(gradient)  # @bp all_reduce


def spawned(rank, how):
    if rank == 1:
        fail(how, 5)
    threading.Event().wait()


class Squares(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 5:
            fail("raise", index)
        return torch.tensor(index)


def big():
    """Locals of 2 GB of tensors and of five million entries."""
    weights = [torch.ones(1 << 28), torch.full((1 << 28,), 2.0)]
    table = {number: str(number) for number in range(5_000_000)}
    fail("raise", len(weights) + len(table))


def main(how):
    if how == "spawn":
        mp.spawn(spawned, args=(os.environ.get("FAILS_BY", "raise"),), nprocs=2)
    elif how == "loader":
        for _ in DataLoader(Squares(), batch_size=2, num_workers=2):
            pass
    elif how == "big":
        big()
    else:
        train(os.environ.get("FAILS_BY", "raise"))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
