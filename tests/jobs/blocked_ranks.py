"""A torchrun worker: all ranks but the last wait for it in a collective. The last comes when the file RELEASE is there.

With HOW=gil it never comes: it sits in C with the interpreter's lock held.
"""

import ctypes
import os
import threading
import time

import torch
import torch.distributed as dist


def wait_for_release():
    while not os.path.exists(os.environ["RELEASE"]):
        time.sleep(0.02)  # @bp late


def hold_the_interpreter():
    ctypes.PyDLL(None).sleep(100)  # @bp gil


def reduce_gradient(gradient):
    scale, secret_token = 0.5, "hunter2"
    dist.all_reduce(gradient)  # @bp reduce
    return gradient * scale


def train_step(rank):
    gradient = torch.ones(4) * rank
    if rank == dist.get_world_size() - 1:
        if os.environ.get("HOW") == "gil":
            hold_the_interpreter()
        wait_for_release()
    return reduce_gradient(gradient)


def serve():
    threading.Event().wait(100)  # @bp serve


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    threading.Thread(target=serve, daemon=True).start()
    gradient = train_step(dist.get_rank())
    print(f"RESULT rank={dist.get_rank()} sum={float(gradient.sum()):.1f}\n", end="", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
