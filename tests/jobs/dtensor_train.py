"""Two ranks with sharded weights: what one of them holds can be looked at while the other waits in a collective."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor


def main():
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    rank = dist.get_rank()
    weights = distribute_tensor(torch.arange(80.0).view(8, 10), mesh, [Shard(0)])
    whole = distribute_tensor(torch.ones(4), mesh, [Replicate()])
    parameter = torch.nn.Parameter(weights)
    if rank == 0:
        print(f"RESULT rank 0 has {weights.to_local().sum().item()}", flush=True)  # @bp sharded
    dist.all_reduce(torch.ones(1))
    total = weights.sum().full_tensor().item()
    print(f"RESULT rank {rank}: {total} {whole.to_local().sum().item()} {parameter.shape}\n", end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
