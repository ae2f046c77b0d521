"""A torchrun worker that stands at one line with a scalar and 100 MB of its own, until it is ended."""

import time

import torch
import torch.distributed as dist

SECONDS = 120


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank = dist.get_rank()
    loss = 0.25 + 0.001 * rank
    generator = torch.Generator().manual_seed(rank % 2)
    weight = torch.rand(25_000_000, generator=generator)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        dist.barrier()
        time.sleep(0.01)  # @bp hit
    print(loss, weight.shape)


if __name__ == "__main__":
    main()
