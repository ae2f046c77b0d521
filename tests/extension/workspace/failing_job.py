"""A torchrun job in which one rank fails, while the others wait for it in a collective."""

import torch
import torch.distributed as dist


def loss_of(batch, step):
    loss = float(batch.mean())
    if loss > 3:
        raise ValueError(f"loss {loss:.1f} in step {step}")  # @bp raise
    return loss


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for step in range(10):
        batch = torch.full((4,), float(rank * step))
        loss_of(batch, step)
        dist.all_reduce(batch)  # @bp reduce
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
