"""Works when asked over a socket: `python workload.py SOCKET [listen]`."""

import json
import socket
import sys
import time


def tiny(x):
    return x + 1


def calls(rounds):
    x = 0
    for _ in range(rounds):
        x = tiny(x)


def exceptions(rounds):
    for _ in range(rounds):
        try:
            thrower()
        except ValueError:
            pass


def thrower():
    raise ValueError


def elsewhere():
    return 1  # @bp elsewhere


class TorchStep:
    def __init__(self):
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.data = torch.randn(16, 32)

    def __call__(self, rounds):
        for _ in range(rounds):
            self.optimizer.zero_grad()
            loss = self.model(self.data).pow(2).mean()
            loss.backward()
            self.optimizer.step()


def main():
    import os

    if "listen" in sys.argv:
        import debugpy  # noqa: T100 - the peer

        debugpy.listen(("127.0.0.1", 0))  # noqa: T100
    workloads = {"calls": calls, "exceptions": exceptions}
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
        else:
            if what == "torch" and what not in workloads:
                workloads[what] = TorchStep()
            work = workloads[what]
            started = time.process_time()
            work(amount)
            answer = time.process_time() - started
        file.write(json.dumps(answer) + "\n")
        file.flush()


if __name__ == "__main__":
    main()
