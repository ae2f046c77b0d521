"""A torchrun worker: rank 0 waits on a store for what rank 1 sets."""

from datetime import timedelta

import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    port = [None]
    if rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        port = [store.port]
    dist.broadcast_object_list(port, 0)
    if rank == 1:
        store = dist.TCPStore("127.0.0.1", port[0], is_master=False)
        store.set("go", "now")  # @bp set
    else:
        store.wait(["go"], timedelta(seconds=90))
    print(f"RESULT rank={rank} {store.get('go').decode()}\n", end="", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
