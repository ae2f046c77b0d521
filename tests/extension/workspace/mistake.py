"""Rank 0 alone waits for everybody: a mistake that is underlined as it is written."""

import torch
import torch.distributed as dist


def save(model, path):
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path)
        dist.barrier()  # @bp barrier
