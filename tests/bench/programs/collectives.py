"""Two ranks that do collectives when asked over a socket, or hang: `python collectives.py SOCKET [RANKS]`."""

import json
import os
import socket
import subprocess
import sys
import time


def loop(dist, tensor, rounds):
    """CPU seconds of this process, and seconds."""
    began, started = time.process_time(), time.perf_counter()
    for _ in range(rounds):
        dist.all_reduce(tensor)
        tensor.fill_(1.0)
    return time.process_time() - began, time.perf_counter() - started


def rank_main():
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    tensor = torch.ones(16_384)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[1])
    file = connection.makefile("rw")
    for line in file:
        asked = json.loads(line)
        if asked is None:
            break
        what, amount = asked
        if what == "pid":
            answer = os.getpid()
        elif what == "rank":
            answer = dist.get_rank()
        elif what == "hang":  # answered before: the moment it begins
            file.write(json.dumps(time.time()) + "\n")
            file.flush()
            dist.all_reduce(tensor)
            continue
        else:
            answer = loop(dist, tensor, amount)
        file.write(json.dumps(answer) + "\n")
        file.flush()


def main(ranks):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    place = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    argv = [sys.executable, __file__, sys.argv[1]]
    started = [subprocess.Popen(argv, env={**os.environ, **place, "RANK": str(rank)}) for rank in range(ranks)]
    for process in started:
        process.wait()


if __name__ == "__main__":
    if "RANK" in os.environ:
        rank_main()
    else:
        main(int(sys.argv[2]) if len(sys.argv) > 2 else 2)
