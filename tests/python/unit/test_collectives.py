"""Time-outs of process groups: raised when made, read back, given back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.fake_hub import FakeHub

pytestmark = pytest.mark.torch

PROGRAM = """
import sys, threading
from datetime import timedelta
import torch, torch.distributed as dist
rank, port = int(sys.argv[1]), sys.argv[2]
store = dist.TCPStore("127.0.0.1", int(port), 2, is_master=rank == 0)
dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=timedelta(seconds=4))
sub = dist.new_group([0, 1], timeout=timedelta(seconds=5))
print("READY", flush=True)
sys.stdin.readline()
x = torch.ones(1); dist.all_reduce(x); dist.all_reduce(x, group=sub)
print("RESULT", x.item(), flush=True)
sys.stdin.readline()
dist.destroy_process_group()
"""


def _free_port() -> str:
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


@pytest.mark.slow
@pytest.mark.parametrize("level", ["OFF", "DETAIL"])
def test_a_gloo_time_out_survives_a_longer_pause_and_comes_back(tmp_path: Path, level: str) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    port = _free_port()
    with FakeHub(tmp_path) as hub:
        ranks = [
            subprocess.Popen(
                [sys.executable, str(tmp_path / "train.py"), str(rank), port],
                env=hub.environment(RANK=str(rank), WORLD_SIZE="2", TORCH_DISTRIBUTED_DEBUG=level),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in (0, 1)
        ]
        try:
            for process in ranks:
                assert process.stdout is not None
                assert process.stdout.readline() == "READY\n"
            zero = hub.member(lambda x: x.facts.rank == 0)
            groups = zero.ask("timeouts")["groups"]
            week = 7 * 24 * 3600
            assert {group["seconds"] for group in groups} == {week}
            assert {group["original"] for group in groups} == {4.0, 5.0}
            assert len(groups) == (4 if level == "DETAIL" else 2)
            _go(ranks[0])
            hub.pause(6)
            _go(ranks[1])
            for process in ranks:
                assert process.stdout is not None
                assert process.stdout.readline() == "RESULT 4.0\n"
            restored = zero.ask("timeouts", raised=False)["groups"]
            assert sorted({group["seconds"] for group in restored}) == [4.0, 5.0]
            for process in ranks:
                _go(process)
                assert process.wait(20) == 0
        finally:
            for process in ranks:
                process.kill()
                process.communicate()


def _go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
