"""Every way in which Ray code of a person can fail: ``python fails_ray.py HOW``. The driver catches what comes back."""

import asyncio
import ctypes
import os
import sys

import ray


def fail(step):
    loss = step * 0.5
    raise ValueError(f"bad step {step} {loss}")  # @bp raise


@ray.remote(num_cpus=0)
def task(step):
    fail(step)


@ray.remote(num_cpus=0)
class Actor:
    def method(self, step):
        fail(step)

    def die(self):
        os._exit(3)

    def crash(self):
        ctypes.string_at(0)  # @bp crash

    def nested(self, step):
        inner = Actor.remote()
        return ray.get(inner.method.remote(step))  # @bp nested


@ray.remote(num_cpus=0)
class Constructor:
    def __init__(self, step):
        fail(step)

    def method(self):
        return 1


@ray.remote(num_cpus=0)
class Async:
    async def method(self, step):
        await asyncio.sleep(0)
        fail(step)


@ray.remote(num_cpus=0, concurrency_groups={"io": 2})
class Grouped:
    @ray.method(concurrency_group="io")
    def method(self, step):
        fail(step)


WAYS = {
    "task": lambda: task.remote(7),
    "method": lambda: Actor.remote().method.remote(7),
    "constructor": lambda: Constructor.remote(7).method.remote(),
    "async": lambda: Async.remote().method.remote(7),
    "group": lambda: Grouped.remote().method.remote(7),
    "nested": lambda: Actor.remote().nested.remote(7),
    "killed": lambda: Actor.remote().die.remote(),
    "crash": lambda: Actor.remote().crash.remote(),
}


def main(how):
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    actor = WAYS[how]()
    ray.get(actor)  # @bp get


if __name__ == "__main__":
    main(sys.argv[1])
