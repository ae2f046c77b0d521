"""torchrun ranks of which one asks for a stop by torch's own means."""

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    dist.breakpoint(rank=1)
    total = torch.ones(1) * rank  # @bp after
    dist.all_reduce(total)
    print(f"RESULT rank={rank} total={float(total)}\n", end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
