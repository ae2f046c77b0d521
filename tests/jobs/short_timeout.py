"""A torchrun worker whose process group has a time-out of 4 s."""

from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=4))
    rank = dist.get_rank()
    first = torch.ones(1)
    dist.all_reduce(first)
    before = float(first) + rank
    second = torch.ones(1)  # @bp between
    dist.all_reduce(second)
    print(f"RESULT rank={rank} before={before} after={float(second)}\n", end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
