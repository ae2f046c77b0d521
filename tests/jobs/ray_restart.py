"""An actor that dies once and is restarted by Ray: a new incarnation of the same rank."""

import os

import ray


@ray.remote(num_cpus=0, max_restarts=1, max_task_retries=1)
class Fragile:
    def __init__(self, rank):
        self.rank = rank
        self.pid = os.getpid()

    def work(self, marker):
        if not os.path.exists(marker):
            open(marker, "w").close()
            os._exit(1)
        answer = self.rank + 40
        return answer  # @bp work

    def where(self):
        return self.pid


def main():
    import tempfile

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        actor = Fragile.remote(2)
        first = ray.get(actor.where.remote())
        answer = ray.get(actor.work.remote(os.path.join(folder, "died")))
        second = ray.get(actor.where.remote())
    print(f"RESULT answer={answer} restarted={first != second}")


if __name__ == "__main__":
    main()
