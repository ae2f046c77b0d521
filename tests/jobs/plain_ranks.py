"""A launcher without torch or Ray: starts itself N times with RANK and WORLD_SIZE in the environment.

    python plain_ranks.py [RANKS [STEPS]]

With HOLD_FILE the ranks wait at the end until that file exists.
"""

import os
import subprocess
import sys
import threading


def train_step(rank, step):
    loss = 10.0 / (1 + step) + rank
    label = "step %d" % step
    return loss, label  # @bp step


def unused():
    return 1  # @bp never


# @bp comment
def rank_main(rank, steps):
    for step in range(steps):
        loss, label = train_step(rank, step)
        print(f"RESULT rank={rank} {label} loss={loss:.3f}\n", end="", flush=True)
    hold = os.environ.get("HOLD_FILE")
    while hold and not os.path.exists(hold):
        threading.Event().wait(0.05)
    return int(os.environ.get("JOB_EXIT_CODE", "0")) if rank == 0 else 0


def launcher_main(count, steps):
    processes = []
    for rank in range(count):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank)}
        argv = [sys.executable, __file__, str(count), str(steps)]
        processes.append(subprocess.Popen(argv, env=environment))
    codes = [process.wait() for process in processes]
    print("RESULT launcher done", flush=True)  # @bp launcher
    return max(codes, key=abs)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    if "RANK" in os.environ:
        sys.exit(rank_main(int(os.environ["RANK"]), steps))
    sys.exit(launcher_main(count, steps))
