"""A Ray driver with four actors; each notes when its first line ran. `python ray_start.py FOLDER [listen]`."""

import sys
from pathlib import Path

import ray


@ray.remote(num_cpus=0)
class Worker:
    def __init__(self, rank, folder, listens):
        import time

        if listens:
            import debugpy  # noqa: T100 - the peer

            debugpy.listen(("127.0.0.1", 0))  # noqa: T100
        Path(folder, str(rank)).write_text(repr(time.time()))

    def work(self):
        return 1

    def never(self):
        return 2  # @bp never


def main():
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    workers = [Worker.remote(rank, sys.argv[1], "listen" in sys.argv) for rank in range(4)]
    ray.get([worker.work.remote() for worker in workers])


if __name__ == "__main__":
    main()
