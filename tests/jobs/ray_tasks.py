"""Remote functions: no actor, no rank anywhere."""

import ray


@ray.remote
def square(number):
    result = number * number
    return result  # @bp task


def main():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    print("RESULT", ray.get([square.remote(n) for n in range(6)]))


if __name__ == "__main__":
    main()
