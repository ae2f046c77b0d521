"""A driver with a runtime_env of its own: python own_runtime_env.py function|name (how the setup hook is given)."""

import os
import sys

import hooks
import ray


@ray.remote(num_cpus=0)
class Worker:
    def __init__(self, rank):
        self.rank = rank

    def look(self):
        seen = {name: os.environ.get(name) for name in ("MINE", "FROM_OWN_HOOK", "FROM_OWN_SETUP")}
        seen["copied"] = os.getcwd() != os.environ["SUBMITTED_FROM"] and os.path.exists("hooks.py")
        return seen  # @bp look


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    runtime_env = {
        "working_dir": here,
        "env_vars": {"MINE": "kept", "SUBMITTED_FROM": here},
        "worker_process_setup_hook": hooks.setup if sys.argv[1] == "function" else "hooks.setup",
    }
    ray.init(log_to_driver=False, runtime_env=runtime_env)
    for seen in ray.get([worker.look.remote() for worker in [Worker.remote(rank) for rank in range(2)]]):
        print("RESULT", seen)
    print("RESULT done")  # @bp end


if __name__ == "__main__":
    main()
