"""Four Ray actors that train together over gloo; each gets its rank in the constructor. Knows nothing of RankScope."""

import os
import socket
import sys

import ray


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self, rank, world_size, port):
        import torch.distributed as dist

        self.rank = rank
        self.world_size = world_size
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world_size)

    def train(self, steps):
        import torch
        import torch.distributed as dist

        torch.manual_seed(self.rank)
        weights = torch.zeros(4)
        losses = []
        for step in range(steps):
            gradient = torch.rand(4) - weights
            dist.all_reduce(gradient)
            weights = weights + 0.1 * gradient / self.world_size
            loss = float((gradient**2).sum())
            losses.append(round(loss, 6))  # @bp step
        return losses

    def pid(self):
        return os.getpid()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    world_size = 4
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    port = free_port()
    trainers = [Trainer.remote(rank, world_size, port) for rank in range(world_size)]
    for rank, losses in enumerate(ray.get([t.train.remote(3) for t in trainers])):
        print(f"RESULT rank={rank} losses={losses}")
    print("RESULT done")  # @bp driver_end
    return int(os.environ.get("JOB_EXIT_CODE", "0"))


if __name__ == "__main__":
    sys.exit(main())
