"""Four Ray actors fit one small model together: each has its share of the data, and they average their gradients."""

import socket
import sys

import ray
import torch
import torch.distributed as dist


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self, rank, world_size, port):
        self.rank = rank
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world_size)
        generator = torch.Generator().manual_seed(rank)
        self.inputs = torch.randn(20_000, 64, generator=generator)
        self.targets = self.inputs @ torch.linspace(-1, 1, 64) + rank
        self.weights = torch.zeros(64)

    def step(self):
        error = self.inputs @ self.weights - self.targets
        loss = float((error**2).mean())
        gradient = self.inputs.T @ error / len(error)
        dist.all_reduce(gradient)  # @bp reduce
        self.weights -= 0.1 * gradient / dist.get_world_size()
        return loss  # @bp loss

    def train(self, steps):
        losses = []
        for step in range(steps):
            losses.append(self.step())  # @bp step
        return losses


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    world_size = 4
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    ray.init(num_cpus=world_size, include_dashboard=False, log_to_driver=False)
    port = free_port()
    trainers = [Trainer.remote(rank, world_size, port) for rank in range(world_size)]
    for rank, losses in enumerate(ray.get([trainer.train.remote(steps) for trainer in trainers])):
        print(f"rank {rank}: loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    print("trained")  # @bp trained


if __name__ == "__main__":
    main()
