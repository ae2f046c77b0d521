"""torch.multiprocessing.spawn: the rank is an argument, nothing about it is in the environment."""

import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank, world_size, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world_size)
    torch.manual_seed(rank)
    total = torch.rand(2)
    dist.all_reduce(total)
    loss = float(total.sum()) + rank  # @bp step
    print(f"RESULT rank={rank} loss={loss:.6f}\n", end="", flush=True)
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    mp.spawn(train, args=(3, free_port()), nprocs=3)
    print("RESULT done")
