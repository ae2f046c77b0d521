"""A rank that runs an inference engine in a spawned child process, as vLLM does. Start it with plain RANK or alone."""

import multiprocessing
import os


def engine_core(requests, answers):
    while (request := requests.get()) is not None:
        tokens = [request, request + 1]
        answers.put((tokens, os.environ.get("ENGINE_FLAG")))  # @bp engine


def main():
    os.environ["ENGINE_FLAG"] = "kept"
    context = multiprocessing.get_context("spawn")
    requests, answers = context.Queue(), context.Queue()
    engine = context.Process(target=engine_core, args=(requests, answers), name="EngineCore")
    engine.start()
    for request in (10, 20):
        requests.put(request)
        print("RESULT", answers.get(timeout=60))
    requests.put(None)
    engine.join(30)
    print("RESULT engine exit code", engine.exitcode)


if __name__ == "__main__":
    main()
