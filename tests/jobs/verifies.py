"""A check in a program: rank 2 has another seed."""

import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from rankscope import verify_distributed_tensors


def main(rank, ranks):
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    torch.manual_seed(5 if rank == 2 else 4)
    weights = {"w": torch.randn(8)}
    verify_distributed_tensors(weights, operation_name="after the seed", on_mismatch="break")  # @bp check
    dist.barrier()
    print("RESULT", rank, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(main, args=(int(sys.argv[1]),), nprocs=int(sys.argv[1]))
