"""Four ranks without torch: `python ranks.py` starts itself; each spins until its stdin closes."""

import os
import subprocess
import sys
import time


def inner(depth):
    if depth:
        return inner(depth - 1)
    hit_at = time.time()
    return depth, hit_at  # @bp hit


def main():
    end = time.monotonic() + 120
    while time.monotonic() < end:
        inner(10)
        time.sleep(0.01)


if __name__ == "__main__":
    if "RANK" in os.environ:
        main()
    else:
        ranks = [
            subprocess.Popen([sys.executable, __file__], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "4"})
            for rank in range(4)
        ]
        for rank in ranks:
            rank.wait()
