"""A driver that waits for an actor with a time-out: ``ray_get_timeout.py SECONDS``."""

import os
import sys

import ray

NAMES = ("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "RAY_CGRAPH_get_timeout")


@ray.remote
class Worker:
    def step(self, number):
        print("\n".join(f"ENV worker {name}={os.environ.get(name)}" for name in NAMES), flush=True)
        answer = number * 2
        return answer  # @bp step


def main():
    ray.init(num_cpus=2, include_dashboard=False)
    print("\n".join(f"ENV driver {name}={os.environ.get(name)}" for name in NAMES), flush=True)
    worker = Worker.remote()
    print("RESULT", ray.get(worker.step.remote(21), timeout=float(sys.argv[1])), flush=True)


if __name__ == "__main__":
    main()
