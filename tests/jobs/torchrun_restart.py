"""torchrun --max-restarts 1: rank 1 fails the first time, after rank 0 has done its work. Needs MARK_FILE."""

import os
import sys
import threading


def work(rank, incarnation):
    value = 100 * incarnation + rank
    return value  # @bp work


def main():
    rank, incarnation = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    mark = os.environ["MARK_FILE"]
    print(f"RESULT rank={rank} value={work(rank, incarnation)}\n", end="", flush=True)
    if rank == 0:
        open(mark, "w").close()
    while not os.path.exists(mark):
        threading.Event().wait(0.02)
    sys.exit(1 if rank == 1 and incarnation == 0 else 0)


if __name__ == "__main__":
    main()
