"""Trains on several gloo ranks; rank 1 goes its own way at a step: DIVERGES_AT, by DIVERGES_BY."""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def flip(parameter):
    parameter.data.view(torch.int32)[1, 2] ^= 1 << 20


def train(rank, ranks):
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    by, at = os.environ.get("DIVERGES_BY", ""), int(os.environ.get("DIVERGES_AT", "0"))
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    if by == "broadcast" and rank == 1:
        torch.nn.init.ones_(model[2].bias)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    given = torch.utils.data.TensorDataset(torch.arange(384.0).view(384, 1).expand(384, 16))
    meant = torch.utils.data.distributed.DistributedSampler(given, ranks, rank, shuffle=False)
    loader = iter(torch.utils.data.DataLoader(given, 4, sampler=None if by == "sampler" else meant))
    for step in range(1, 13):
        optimizer.zero_grad()
        (batch,) = next(loader)
        model(batch + rank).square().mean().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        if rank == 1 and step == at:
            flip(model[0].weight)
            if by == "leaves":
                continue
        optimizer.step()  # @bp step
    print(f"RESULT rank {rank} {step}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    count = int(sys.argv[1])
    mp.spawn(train, args=(count,), nprocs=count)
