"""A program that starts what is no part of a job (tools, trackers, servers), and two children that are."""

import multiprocessing
import subprocess
import sys


def answer(queue, number):
    queue.put(number)  # @bp answer


def main():
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    subprocess.run([sys.executable, "-m", "venv", "--help"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([sys.executable, "-m", "pip", "--version"], check=False, capture_output=True)
    subprocess.run(["sh", "-c", "true"], check=True)
    answers = []
    for number, kind in enumerate(("spawn", "forkserver")):
        context = multiprocessing.get_context(kind)
        queue = context.Queue()
        process = context.Process(target=answer, args=(queue, number))
        process.start()
        answers.append(queue.get(timeout=60))
        process.join(30)
    print("RESULT", answers)  # @bp end


if __name__ == "__main__":
    main()
