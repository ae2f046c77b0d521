"""Worker methods behind a dispatch decorator, called through a worker group, as verl does it."""

import functools

import ray


def register(method):
    @functools.wraps(method)
    def inner(*args, **kwargs):
        return method(*args, **kwargs)

    inner.is_dispatched = True
    return inner


class Worker:
    def __init__(self, rank):
        self.rank = rank

    @register
    def update_policy(self, batch):
        loss = batch + self.rank
        return loss  # @bp update


class WorkerGroup:
    def __init__(self, cls, size):
        remote = ray.remote(num_cpus=0)(cls)
        self.workers = [
            remote.options(runtime_env={"env_vars": {"RANK": str(rank), "WORLD_SIZE": str(size)}}).remote(rank)
            for rank in range(size)
        ]

    def update_policy(self, batch):
        return ray.get([worker.update_policy.remote(batch) for worker in self.workers])


def main():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    print("RESULT", WorkerGroup(Worker, 2).update_policy(10))


if __name__ == "__main__":
    main()
