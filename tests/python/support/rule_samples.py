"""Samples for the lints: by rule what it must find, marked `# !`, and what no rule may say anything about."""

from __future__ import annotations

HEAD = """
import os, random, sys, pdb, ray, torch
import torch.distributed as dist
from accelerate import Accelerator
from verl.single_controller.base import Worker
"""

BAD: dict[str, list[str]] = {
    "collective-on-some-ranks": [
        """
        if dist.get_rank() == 0:
            dist.barrier()  # !
        """,
        """
        def save(rank, model):
            if rank == 0 and model is not None:
                torch.save(model, "x")
                dist.barrier()  # !
        """,
        """
        rank = int(os.environ["RANK"])
        master = rank == 0
        if not master:
            print("hello")
        else:
            with torch.no_grad():
                for _ in range(3):
                    torch.distributed.all_reduce(x)  # !
        """,
        """
        def save(accelerator):
            if accelerator.is_main_process:
                accelerator.wait_for_everyone()  # !
        """,
        """
        if rank in (0, 1):
            group = dist.new_group([0, 1])  # !
        """,
        """
        def sync():
            with torch.no_grad():
                dist.barrier()

        def main(rank):
            if rank % 8 == 0:
                sync()  # !
        """,
        """
        class Trainer:
            def save(self):
                self.write()
                dist.barrier()

            def end(self):
                if self.rank == 0:
                    self.save()  # !
        """,
        """
        @rank_zero_only
        def save(model):
            dist.barrier()  # !
        """,
        """
        def main(rank):
            if rank != 0:
                pass
            else:
                dist.broadcast(x, 0)  # !
                return
            print("others")
        """,
        """
        local = int(os.getenv("LOCAL_RANK", "0"))
        if local == 0:
            dist.all_gather(xs, x, group=None)  # !
        """,
    ],
    "different-collectives": [
        """
        if rank == 0:
            dist.broadcast(x, 0)  # !
        else:
            dist.all_reduce(x)
        """,
        """
        if rank == 0:
            dist.barrier()  # !
            dist.broadcast(x, 0)
        else:
            y = dist.broadcast(x, 0)
            with torch.no_grad():
                dist.barrier()
        """,
        """
        if is_main_process():
            dist.broadcast(x, 0)
            dist.barrier()  # !
        else:
            dist.broadcast(x, 0)
        """,
    ],
    "exit-before-collective": [
        """
        def save(rank):
            if rank != 0:
                return  # !
            torch.save(1, "x")
            dist.barrier()
        """,
        """
        for step in range(3):
            if dist.get_rank() == 3 and step == 2:
                break  # !
            dist.all_reduce(x)
        """,
        """
        def load(path):
            if rank == 0 and not os.path.exists(path):
                raise FileNotFoundError(path)  # !
            with open(path):
                if dist.is_initialized():
                    dist.barrier()
        """,
        """
        def run(rank):
            if rank > 1:
                print("idle")
                sys.exit(0)  # !
            for x in xs:
                dist.all_reduce(x)
        """,
    ],
    "collective-in-destructor": [
        """
        class Buffer:
            def __del__(self):
                dist.barrier()  # !
        """,
    ],
    "seed-on-some-ranks": [
        """
        if rank == 0:
            torch.manual_seed(0)  # !
        """,
        """
        def init(rank):
            if rank != 0:
                print("no seed")
            else:
                random.seed(0)  # !
        """,
    ],
    "sync-on-one-rank": [
        """
        for batch in loader:
            loss = model(batch)
            loss.backward()
            if rank == 0:
                print(loss.item())  # !
        """,
    ],
    "no-destroy-process-group": [
        """
        def main():
            dist.init_process_group("gloo")  # !

        if __name__ == "__main__":
            main()
        """,
    ],
    "ray-get-in-loop": [
        """
        results = [ray.get(actor.run.remote()) for actor in actors]  # !
        """,
        """
        @ray.remote
        def square(x):
            return x * x

        def main():
            total = 0
            for x in range(10):
                total += ray.get(square.remote(x))  # !
                print(x)
        """,
        """
        check = ray.remote(num_cpus=1)(print)
        check2 = ray.remote(print)
        for x in range(10):
            ray.get(check2.remote(x))  # !
        """,
    ],
    "remote-breakpoint": [
        """
        @ray.remote(num_cpus=1)
        class Actor:
            def run(self):
                breakpoint()  # !
        """,
        """
        def work(x):
            def inner():
                pdb.set_trace()  # !
            return inner()

        work = ray.remote(work)
        """,
    ],
    "verl-local-rank": [
        """
        class MyWorker(Worker):
            def load(self):
                self.is_first = os.environ["LOCAL_RANK"] == "0"  # !
                return int(os.getenv("LOCAL_RANK", 0))  # !
        """,
    ],
}

GOOD = [
    # with a group of its own, or on an object of unknown type
    """
    if rank == 0:
        dist.broadcast(x, 0, group=pair)
        dist.broadcast(x, 0, pair)
        dist.all_gather(*arguments)
        dist.barrier(**options)
        engine.barrier()
    """,
    # sends and receives are not collectives
    """
    if rank == 0:
        dist.send(x, 1)
    else:
        dist.recv(x, 0)
    """,
    # the same on both sides, also by way of functions, an early return, or something unknown
    """
    if rank == 0:
        x = load()
        dist.broadcast(x, 0)
    else:
        x = empty()
        dist.broadcast(x, 0)
    """,
    """
    def main(rank):
        if rank == 0:
            dist.broadcast(x, 0)
            return x
        receive()

    def receive():
        if x is not None:
            dist.broadcast(x, 0)
    """,
    """
    from other import receive
    if rank == 0:
        dist.broadcast(x, 0)
    else:
        receive(x)
    """,
    # rank 0 loads first, the others wait for it
    """
    if rank != 0:
        dist.barrier()
    load()
    if rank == 0:
        dist.barrier()
    """,
    # no ranks: a loop's number, "not distributed", the rank of a matrix, every rank
    """
    for rank in range(4):
        if rank == 0:
            dist.barrier()
    """,
    """
    if local_rank == -1:
        dist.barrier()
    if rank >= 0:
        dist.barrier()
    if rank is None:
        dist.barrier()
    """,
    """
    rank = len(shape)
    if rank == 2:
        dist.all_reduce(x)
    """,
    # a part of the condition does not choose ranks, so its opposite does not either
    """
    if rank == 0 and verbose:
        print("hi")
    else:
        dist.barrier()
    if rank == 0 or everywhere:
        dist.barrier()
    """,
    # it is not run there
    """
    if rank == 0:
        def later():
            dist.barrier()
        atexit.register(lambda: dist.barrier())
    """,
    """
    for i in range(world_size):
        if i == rank:
            print(rank)
        dist.barrier()
    """,
    # those who leave have run it, or something unknown
    """
    def save(rank):
        if rank != 0:
            dist.barrier()
            return
        dist.barrier()
    """,
    """
    def serve(rank):
        if rank != 0:
            worker_loop()
            return
        dist.barrier()
    """,
    # seeds everywhere
    """
    if rank == 0:
        torch.manual_seed(0)
    else:
        torch.manual_seed(1)
    """,
    # not in every step
    """
    for step, batch in enumerate(loader):
        loss.backward()
        if step % 100 == 0:
            if rank == 0:
                print(loss.item())
    if rank == 0:
        print(loss.item())
    """,
    # one round needs another, or the calls go to one actor, or something else happens between
    """
    for step in range(3):
        state = ray.get(actor.step.remote(state))
    for batch in batches:
        ray.get(actor.step.remote(batch))
    for actor in actors:
        if ray.get(actor.is_ready.remote()):
            break
    for actor in actors:
        ray.get(actor.start.remote())
        wait_until_up(actor)
    refs = [actor.run.remote() for actor in actors]
    for ref in refs:
        print(ray.get(ref))
    """,
    """
    def main():
        dist.init_process_group("gloo")
        try:
            train()
        finally:
            cleanup()

    if __name__ == "__main__":
        main()
    """,
    """
    def local():
        breakpoint()

    class MyWorker(Worker):
        def __init__(self):
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    """,
]
