"""A torchrun job in which one rank skips a collective: the others wait for it until the file `go` is there."""

import pathlib
import time

import torch
import torch.distributed as dist


def load_batch(rank, step):
    if rank == 2 and step == 1:
        while not pathlib.Path("go").exists():
            time.sleep(0.05)  # @bp elsewhere
    return torch.full((4,), float(rank + step))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for step in range(3):
        batch = load_batch(rank, step)
        dist.all_reduce(batch)  # @bp reduce
    print(f"rank {rank}: done\n", end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
