"""Rank 0 waits for what rank 1 puts into a store, but not for ever."""

import os
import time
from datetime import timedelta

import torch.distributed as dist


def main():
    rank = int(os.environ["RANK"])
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    if rank == 1:
        store.set("weights", "0.5")  # @bp set
    else:
        time.sleep(8)
        store.wait(["weights"], timedelta(seconds=45))
    print(f"rank {rank}: weights {store.get('weights').decode()}\n", end="", flush=True)


if __name__ == "__main__":
    main()
