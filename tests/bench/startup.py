"""How much later the first line of the person's code runs on all four Ray ranks, armed, than in the plain job.

Beside it the usual way: `debugpy.listen` as the first line of each worker. The three take turns.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _measure import PROGRAMS, Table, environment

PROGRAM = PROGRAMS / "ray_start.py"
RUNS = 9  # ray.init waits a whole second more, or not, by chance: few runs would be a lottery
_RUN_SECONDS = 120


def never_line():
    return next(n for n, line in enumerate(PROGRAM.read_text().splitlines(), 1) if line.endswith("# @bp never"))


def reached(prefix, *arguments):
    """Seconds from the start until the last rank was at its first line."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [*prefix, sys.executable, str(PROGRAM), folder, *arguments]
        started = time.time()
        subprocess.run(argv, env=environment(), check=True, capture_output=True, timeout=_RUN_SECONDS)
        return max(float((Path(folder) / str(rank)).read_text()) for rank in range(4)) - started


def main():
    under = [sys.executable, "-m", "rankscope.cli", "run", "--break", f"{PROGRAM}:{never_line()}@all", "--"]
    reached([])  # the page cache is warm from here on
    plain, added, peer = [], [], []
    for run in range(RUNS):
        base = reached([])
        plain.append(base)
        added.append(reached(under) - base)
        peer.append(reached([], "listen") - base)
        print(f"run {run + 1}: plain {base:.2f} s, RankScope +{added[-1]:.2f} s, debugpy.listen +{peer[-1]:.2f} s")
    table = Table("startup: until the first line of user code on 4 armed Ray ranks, over the plain job")
    table.add("plain_s_4", plain, "s", is_key=False)
    table.add("added_s_4", added, "s", f"<= 1.5, and below the peer's {statistics.median(peer):.2f}")
    table.add("peer_added_s_4", peer, "s")
    table.show()


if __name__ == "__main__":
    main()
