"""A driver whose workers run a copy of this folder, made by Ray from runtime_env's working_dir."""

import os

import ray
import steps


@ray.remote(num_cpus=0)
class Worker:
    def __init__(self, rank):
        self.rank = rank

    def run(self):
        return steps.work(self.rank), os.path.abspath(steps.__file__)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"working_dir": here})
    answers = ray.get([worker.run.remote() for worker in [Worker.remote(rank) for rank in range(2)]])
    print("RESULT", [answer for answer, _ in answers], "copied:", all(file != steps.__file__ for _, file in answers))


if __name__ == "__main__":
    main()
