"""A torchrun worker: a few steps over gloo."""

import os
import sys

import torch
import torch.distributed as dist


def train_step(weights, step):
    gradient = torch.rand(4) - weights
    dist.all_reduce(gradient)
    weights = weights + 0.1 * gradient
    loss = float((gradient**2).sum())
    return weights, loss  # @bp step


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    weights = torch.zeros(4)
    for step in range(3):
        weights, loss = train_step(weights, step)
        print(f"RESULT rank={rank} step={step} loss={loss:.6f}\n", end="", flush=True)
    dist.barrier()
    dist.destroy_process_group()
    sys.exit(int(os.environ.get("JOB_EXIT_CODE", "0")))


if __name__ == "__main__":
    main()
