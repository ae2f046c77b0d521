"""breakpoint() in a Ray driver and in an actor's method."""

import ray


@ray.remote(num_cpus=0)
class Worker:
    def run(self):
        inside = "worker"
        breakpoint()  # @bp worker
        return inside


def main():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    here = "driver"
    breakpoint()  # @bp driver
    print("RESULT", here, ray.get(Worker.remote().run.remote()))


if __name__ == "__main__":
    main()
