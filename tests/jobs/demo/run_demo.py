"""What `npm run demo` runs: the training job plain, then under RankScope, and the proof that the result is the same.

Exit status 0 only when RankScope stopped on rank 2, and on no other, the logpoint spoke, and the result lines and
the exit status of both runs are equal.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TRAIN = HERE / "train.py"
RUN_SECONDS = 120


def line_of(mark):
    """The number of the line that carries ``# @bp mark``."""
    lines = TRAIN.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# @bp {mark}"))


def run(argv):
    """Run in the demo's folder, showing what matters as it comes; returns (exit status, all lines)."""
    print(f"\n$ {' '.join(show(part) for part in argv)}", flush=True)
    started = time.monotonic()
    process = subprocess.Popen(argv, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = []

    def read(stream):
        for line in stream:
            lines.append(line.rstrip("\n"))
            if line.startswith(("RESULT", "rankscope:")):
                sys.stdout.write(line)
                sys.stdout.flush()

    # The job and RankScope write to a stream each: in one pipe a line could end up inside another.
    readers = [threading.Thread(target=read, args=(stream,)) for stream in (process.stdout, process.stderr)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    status = process.wait(RUN_SECONDS)
    print(f"[exit status {status}, {time.monotonic() - started:.1f} s]", flush=True)
    return status, lines


def show(part):
    part = "python" if part == sys.executable else part
    return f"'{part}'" if " " in part else part


def main():
    plain = [sys.executable, "train.py"]
    under = [
        *("rankscope", "run"),
        *("--break", f"train.py:{line_of('loss')}@2 if iteration == 10"),
        *("--print", "loss", "--print", "returns.shape", "--print", "self.rank"),
        *("--log", f"train.py:{line_of('report')}@0: iteration {{iteration}} loss {{round(float(loss), 4)}}"),
        *("--", sys.executable, "train.py"),
    ]
    plain_status, plain_lines = run(plain)
    status, lines = run(under)
    results = [line for line in plain_lines if line.startswith("RESULT")]
    stops = [line for line in lines if line.startswith("rankscope:") and " stopped " in line]
    logs = [line for line in lines if line.startswith("rankscope:") and " iteration " in line]
    checks = {
        "the result lines are equal": bool(results) and results == [x for x in lines if x.startswith("RESULT")],
        "the exit status is equal": plain_status == status == 0,
        "rank 2 stopped once, no other rank did": len(stops) == 1 and "2" in stops[0].split(" stopped ")[0],
        "the logpoint spoke on rank 0 at each iteration": len(logs) == len(results) - 1,
    }
    print()
    for what, is_true in checks.items():
        print(f"{'yes' if is_true else 'NO '}  {what}")
    if not all(checks.values()):
        print("\nThe whole output of the run under RankScope:", *lines, sep="\n  ")
    print(json.dumps({"demo": "passed" if all(checks.values()) else "failed"}))
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    sys.exit(main())
