"""A torchrun worker: a collective, then a second of small Python steps, again and again until it is ended."""

import time

import torch
import torch.distributed as dist

SECONDS = 120
WORK_SECONDS = 1.0


def work(gradient):
    end = time.monotonic() + WORK_SECONDS  # @bp work
    first = float(gradient.sum())
    second = first * 2
    third = second + 1
    fourth = third - first
    fifth = fourth * second
    sixth = fifth + third
    seventh = sixth - fourth
    eighth = seventh + 1
    while time.monotonic() < end:
        eighth += 1
        time.sleep(0.005)
    return eighth


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    gradient, end = torch.ones(4), time.monotonic() + SECONDS
    while time.monotonic() < end:
        dist.all_reduce(gradient)
        gradient /= dist.get_world_size()
        work(gradient)


if __name__ == "__main__":
    main()
