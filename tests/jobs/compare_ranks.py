"""Four torchrun workers with what can be compared: numbers that differ, NaN, tensors, a DTensor, a blocking call."""

import threading
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.name = "small"


def train_step(model, rank, number):
    loss = float("nan") if rank == 3 else 0.25
    weight = torch.arange(12.0).reshape(3, 4)
    if rank == 2:
        weight[1, 2] = -5.0
    shard = distribute_tensor(torch.arange(8.0), init_device_mesh("cpu", (4,)), [Shard(0)])
    never = threading.Event()
    calls = []
    total = loss + float(weight.sum())
    return total, shard, never, calls, model, number  # @bp step


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    rank, model = dist.get_rank(), Model()
    for number in range(3):
        train_step(model, rank, number)
        dist.barrier()
    print(f"RESULT rank={rank} done\n", end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
