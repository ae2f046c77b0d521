"""The same model under torchrun: one process per rank, which averages its gradients with the others."""

import sys

import torch
import torch.distributed as dist


def local_loss(inputs, targets, weights):
    error = inputs @ weights - targets  # @bp error
    gradient = inputs.T @ error / len(error)
    return float((error**2).mean()), gradient


def train(rank, steps):
    generator = torch.Generator().manual_seed(rank)
    inputs = torch.randn(20_000, 64, generator=generator)
    targets = inputs @ torch.linspace(-1, 1, 64) + rank
    weights = torch.zeros(64)
    for step in range(steps):
        loss, gradient = local_loss(inputs, targets, weights)  # @bp call
        norm = float(gradient.norm())  # @bp norm
        dist.all_reduce(gradient)
        weights -= 0.1 * gradient / dist.get_world_size()  # @bp update
        if step % 100 == 0 and rank == 0:
            print(f"step {step}: loss {loss:.3f}, norm {norm:.3f}", flush=True)  # @bp report
    return loss


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    loss = train(rank, int(sys.argv[1]) if len(sys.argv) > 1 else 300)
    print(f"rank {rank}: last loss {loss:.3f}\n", end="", flush=True)  # @bp done
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
