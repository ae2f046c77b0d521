"""A torchrun worker that waits in a barrier for its last rank, which never comes; 120 seconds at most.

With a port as argument torch's own debug server runs there as well.
"""

import datetime as dt
import sys
import time
from types import SimpleNamespace

import torch.distributed as dist


def wait_for_all():
    dist.barrier()


def main():
    dist.init_process_group("gloo", timeout=dt.timedelta(minutes=5))
    if len(sys.argv) > 1:
        sys.modules.setdefault("tabulate", SimpleNamespace(tabulate=str))  # pages we do not ask for need it
        from torch.distributed.debug import start_debug_server

        start_debug_server(port=int(sys.argv[1]))
    if dist.get_rank() == dist.get_world_size() - 1:
        time.sleep(120)
    else:
        wait_for_all()


if __name__ == "__main__":
    main()
