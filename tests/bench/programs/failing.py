"""Four ranks of which rank 2 fails once all work; ``alone``: one process that fails; ``big``: one with big locals."""

import os
import subprocess
import sys
import threading
import time

BIG = 250_000_000


def fail(index):
    loss = index * 0.5
    print("RAISED", *([os.getpid()] if "alone" in sys.argv else []), time.time(), flush=True)
    raise ValueError(f"bad batch {index} {loss}")


def rank_main(rank):
    table = {number: [number] * 10 for number in range(1000)}
    if rank == 2:
        threading.Event().wait(2.0)  # the others have begun long before
        fail(len(table))
    threading.Event().wait(20.0)


def launcher_main():
    processes = []
    for rank in range(4):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "4", "LOCAL_RANK": str(rank)}
        processes.append(subprocess.Popen([sys.executable, __file__], env=environment))
    code = processes[2].wait()
    for process in processes:
        process.terminate()
        process.wait()
    return code


def big():
    import torch

    weights = [torch.ones(BIG), torch.full((BIG,), 2.0)]
    table = {number: str(number) for number in range(5_000_000)}
    fail(len(weights) + len(table))


if __name__ == "__main__":
    if "alone" in sys.argv:
        fail(1)
    elif "big" in sys.argv:
        big()
    elif "RANK" in os.environ:
        rank_main(int(os.environ["RANK"]))
    else:
        sys.exit(launcher_main())
