"""A driver on a Ray cluster that was running before: python driver.py [ADDRESS], else RAY_ADDRESS says where.

With HOLD_FILE it says READY after its first steps and takes the last ones once that file exists.
"""

import os
import sys
import threading

import ray


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self, rank):
        self.rank = rank

    def step(self, number):
        value = 10 * number + self.rank
        return value  # @bp step

    def was_started_by_uv(self):
        return "UV" in os.environ


def main():
    ray.init(*sys.argv[1:], log_to_driver=False)
    trainers = [Trainer.remote(rank) for rank in range(2)]
    print("RESULT", ray.get([trainer.step.remote(1) for trainer in trainers]), flush=True)
    hold = os.environ.get("HOLD_FILE")
    if hold:
        print("READY", flush=True)
        while not os.path.exists(hold):
            threading.Event().wait(0.05)
        print("RESULT", ray.get([trainer.step.remote(2) for trainer in trainers]))
    print("RESULT by uv:", ray.get([trainer.was_started_by_uv.remote() for trainer in trainers]))


if __name__ == "__main__":
    main()
