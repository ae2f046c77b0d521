"""A rank that forks: by itself, with a child that never returns, and by a multiprocessing pool."""

import multiprocessing
import os
import sys


def square(number):
    answer = number * number
    return answer  # @bp square


def main():
    print("RESULT own", square(2), flush=True)
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os._exit(square(3))
    _, status = os.waitpid(pid, 0)
    print("RESULT forked", os.waitstatus_to_exitcode(status))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print("RESULT pool", pool.map(square, [4, 5], chunksize=1))
        pool.close()
        pool.join()


if __name__ == "__main__":
    main()
