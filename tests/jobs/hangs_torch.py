"""Ranks that hang each other, as HANGS_BY says; a file GO in the folder HANGS_FOLDER lets go who can be let go.

The hang comes after one collective that all have run. Under torchrun, or with ``python hangs_torch.py RANKS`` as plain
processes, of which none is ended when another ends.
"""

import os
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

GO = Path(os.environ.get("HANGS_FOLDER", ".")) / "GO"


def wait_for_go():
    while not GO.exists():
        threading.Event().wait(0.05)  # @bp elsewhere


def missing(rank):
    if rank == 2:
        wait_for_go()
    dist.all_reduce(torch.ones(4))  # @bp waiting


def op(rank):
    if rank == 2:
        dist.broadcast(torch.ones(4), 0)  # @bp odd
    else:
        dist.all_reduce(torch.ones(4))


def shape(rank):
    dist.all_reduce(torch.ones(2 if rank == 2 else 4))
    dist.barrier()


def dtype(rank):
    dist.all_reduce(torch.ones(4, dtype=torch.float64 if rank == 2 else torch.float32))


def early_exit(rank):
    if rank == 2:
        threading.Event().wait(2.5)  # the others wait already
        sys.exit(0)
    try:
        dist.all_reduce(torch.ones(4))
    except RuntimeError:  # gloo lets its neighbours know, and those who wait behind them not
        wait_for_go()


def sub_groups(rank):
    first, second = dist.new_group([0, 1], group_desc="first"), dist.new_group([0, 1], group_desc="second")
    if rank < 2:
        for group in (first, second) if rank == 0 else (second, first):
            dist.all_reduce(torch.ones(4), group=group)  # @bp crossed
    dist.barrier()


def peers(rank):
    if rank == 1:
        dist.recv(torch.ones(4), 3)  # @bp recv
    if rank == 3:
        wait_for_go()
        dist.send(torch.ones(4), 1)


def batch(rank):
    if rank == 1:
        [work] = dist.batch_isend_irecv([dist.P2POp(dist.irecv, torch.ones(4), 3)])
        work.wait()  # @bp batch
    if rank == 3:
        wait_for_go()
        dist.send(torch.ones(4), 1)


def paused(rank):
    value = rank * 2  # @bp pause
    dist.all_reduce(torch.ones(4) * value)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=100))
    rank = dist.get_rank()
    dist.all_reduce(torch.ones(4))
    globals()[os.environ["HANGS_BY"]](rank)
    print(f"RESULT rank {rank} went on", flush=True)
    dist.barrier()
    dist.destroy_process_group()


def start(count):
    """The ranks as processes of their own."""
    ranks = []
    for rank in range(count):
        place = {"RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank)}
        ranks.append(subprocess.Popen([sys.executable, __file__], env={**os.environ, **place}))
    for process in ranks:
        process.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        start(int(sys.argv[1]))
    else:
        main()
