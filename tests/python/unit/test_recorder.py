"""What an agent reads of its process groups: from recordings as torch makes them, and from the calls themselves."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from rankscope.agent.recorder import Recorder
from rankscope.wire.messages import Waits

NATIVE = "torch._C._distributed_c10d"


class Group:
    def __init__(self, name: str, desc: str) -> None:
        self.group_name, self.group_desc = name, desc


class Tensor:
    def __init__(self, *shape: int, device: str = "cpu") -> None:
        self.shape, self.dtype, self.device = shape, "torch.float32", SimpleNamespace(type=device)


class Work:
    is_over = False

    def is_completed(self) -> bool:
        return self.is_over


class FakeTorch:
    """``distributed_c10d`` of rank 1, in the world ``0`` of ranks 0-3 and in the group ``5`` of ranks 1 and 3."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, dumps: tuple[str, ...] = ("_dump_fr_trace_json",)) -> None:
        self.world, self.sub = Group("0", "default_pg"), Group("5", "undefined")
        self.entries: list[dict[str, Any]] = []
        self.status: dict[str, dict[str, str]] = {}
        self.whole_dumps = 0
        self.works: list[Work] = []
        module: Any = ModuleType("distributed_c10d")
        module._world = SimpleNamespace(
            pg_map={self.world: 1, self.sub: 1},
            pg_group_ranks={self.world: dict.fromkeys(range(4)), self.sub: {3: 1, 1: 0}},
        )
        module.is_initialized = lambda: True
        module.get_rank = lambda: 1
        module._get_default_group = lambda: self.world
        module._get_default_store = lambda: SimpleNamespace(underlying_store=SimpleNamespace(host="h", port=9))
        module.get_global_rank = lambda group, rank: sorted(module._world.pg_group_ranks[group])[rank]
        module.isend = module.irecv = self._start
        module.all_reduce = self._all_reduce
        self.inside, self.may_end = threading.Event(), threading.Event()
        monkeypatch.setitem(sys.modules, NATIVE, SimpleNamespace(**dict.fromkeys(dumps, self._dump)))
        for name in ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"):
            monkeypatch.setenv(name, "")  # so that it is as before afterwards
            monkeypatch.delenv(name)
        self.module = module
        self.recorder = Recorder()
        self.recorder.found(module)
        self.told: list[Waits] = []
        self._now = time.monotonic()

    def _dump(self, with_entries: bool, only_active: bool) -> bytes:
        self.whole_dumps += with_entries
        found: dict[str, Any] = {"pg_status": self.status, "pg_config": {"": {"name": "", "ranks": "[]"}}}
        return json.dumps(found | ({"entries": self.entries} if with_entries else {})).encode()

    def _start(self, tensor: Any, *_args: Any, **_kwargs: Any) -> Work:
        self.works.append(Work())
        return self.works[-1]

    def _all_reduce(self, tensor: Any, group: Any = None) -> None:
        self.inside.set()
        self.may_end.wait(20)

    def entered(self, seq: int, op: str = "gloo:all_reduce", number: str = "0", **more: Any) -> None:
        name = {"0": ["0", "default_pg"], "1": ["5", "undefined"]}[number]
        self.entries.append(
            {
                "pg_id": int(number),
                "process_group": name,
                "collective_seq_id": seq,
                "profiling_name": op,
                "is_p2p": False,
                "input_sizes": [[4]],
                "input_dtypes": ["Double"],
                "output_sizes": [[4]],
                "output_dtypes": ["Double"],
                "retired": False,
                "state": "scheduled",
                "time_created_ns": time.time_ns() - 2_000_000_000,
                **more,
            }
        )

    def counts(self, number: str, entered: int, ended: int) -> None:
        self.status[number] = {"last_enqueued_collective": str(entered), "last_completed_collective": str(ended)}

    def look(self, times: int = 1) -> list[Waits]:
        """What was told in so many looks, a second apart."""
        before = len(self.told)
        for _ in range(times):
            self._now += 1.0
            self.recorder.look(self.told.append, self._now)
        return self.told[before:]


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    return FakeTorch(monkeypatch)


def test_a_group_that_does_not_get_on_is_told_once_and_again_when_it_does(torch: FakeTorch) -> None:
    assert torch.look() == [Waits("h:9", 1, [])]
    torch.entered(6, retired=True)
    torch.entered(7)
    torch.entered(8)  # another, not waited for yet
    torch.counts("0", 8, 6)
    assert torch.look() == []  # it may end at any moment
    [told] = torch.look()
    [wait] = told.waits
    assert wait.pop("age") == pytest.approx(2, abs=1)
    assert wait == {
        "group": "0",
        "desc": "default_pg",
        "ranks": "0-3",
        "op": "all_reduce",
        "sizes": [[4]],
        "dtypes": ["float64"],
        "seq": 7,
        "peer": None,
        "tag": 0,
    }
    assert torch.look(5) == []
    assert torch.whole_dumps == 1
    torch.counts("0", 8, 7)
    assert torch.look() == [Waits("h:9", 1, [])]


def test_a_group_that_is_gone_is_waited_in_no_more(torch: FakeTorch) -> None:
    torch.entered(1, number="1")
    torch.counts("1", 1, 0)
    assert [wait["ranks"] for wait in torch.look(2)[-1].waits] == ["1,3"]
    del torch.module._world.pg_map[torch.sub]
    torch.counts("1", 2, 1)
    assert torch.look(2)[-1].waits == []
    torch.module.is_initialized = lambda: False
    assert torch.look(2) == [Waits("h:9", 1, [])]


def test_sends_and_receives_are_counted_and_told_while_their_thread_stands_still(torch: FakeTorch) -> None:
    torch.look()
    torch.module.isend(Tensor(2), 3)
    torch.module.isend(Tensor(2), group=torch.sub, group_dst=1, tag=4)
    torch.module.irecv(Tensor(3))
    torch.module.irecv(Tensor(3, 2), 0)
    assert torch.recorder.answer({})["counts"] == [
        ["send", "0", 3, 0, 1],
        ["send", "5", 3, 4, 1],
        ["recv", "0", -1, 0, 1],
        ["recv", "0", 0, 0, 1],
    ]
    for work in torch.works[:3]:
        work.is_over = True
    blocked = threading.Event()
    thread = threading.Thread(target=lambda: (torch.module.irecv(Tensor(5), 2), blocked.wait(20)))
    thread.start()
    try:
        told = [wait for told in torch.look(3) for wait in told.waits]
    finally:
        blocked.set()
        thread.join()
    assert [(wait["op"], wait["peer"], wait["sizes"], wait["seq"]) for wait in told if wait["peer"] == 2] == [
        ("recv", 2, [[5]], 1)
    ]
    del torch.works[:]  # nobody holds a work any more
    assert torch.look()[-1].waits == []


def test_of_a_device_the_recorder_tells_sends_and_receives_when_it_is_quiet(torch: FakeTorch) -> None:
    torch.look()
    torch.module.irecv(Tensor(2, device="cuda"), 3)
    torch.entered(0, "nccl:recv 1<-3", is_p2p=True)
    told = torch.look(3)
    assert [(wait["op"], wait["peer"], wait["seq"]) for wait in told[-1].waits] == [("recv", 3, 1)]
    assert torch.whole_dumps == 1
    torch.entries[0]["state"] = "completed"
    assert torch.look(6)[-1].waits == []


def test_without_a_recorder_the_calls_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = FakeTorch(monkeypatch, dumps=())
    torch.look()
    thread = threading.Thread(target=torch.module.all_reduce, args=(Tensor(4),))
    thread.start()
    try:
        assert torch.inside.wait(10)
        [told] = torch.look(2)
    finally:
        torch.may_end.set()
        thread.join()
    assert [(wait["op"], wait["seq"], wait["sizes"], wait["peer"]) for wait in told.waits] == [
        ("all_reduce", 1, [[4]], None)
    ]
    assert torch.look() == [Waits("h:9", 1, [])]
    [world, _] = torch.recorder.answer({})["groups"]
    assert world["entered"] == 1


@pytest.mark.parametrize(
    ("dumps", "name"),
    [(("_dump_fr_trace_json",), "TORCH_FR_BUFFER_SIZE"), (("_dump_nccl_trace_json",), "TORCH_NCCL_TRACE_BUFFER_SIZE")],
)
def test_the_buffer_is_switched_on_by_its_name_of_that_torch(
    monkeypatch: pytest.MonkeyPatch, dumps: tuple[str, ...], name: str
) -> None:
    FakeTorch(monkeypatch, dumps)
    assert os.environ[name] == "2000"
    monkeypatch.setenv(name, "77")
    Recorder().found(ModuleType("m"))
    assert os.environ[name] == "77"


def test_what_was_run_of_late_is_answered(torch: FakeTorch) -> None:
    for seq in range(1, 50):
        torch.entered(seq, retired=True)
    [world, sub] = torch.recorder.answer({})["groups"]
    assert (world["entered"], len(world["recent"]), world["recent"][-1]) == (
        49,
        32,
        [49, "all_reduce", [[4]], ["float64"]],
    )
    assert (sub["group"], sub["entered"], sub["recent"]) == ("5", 0, [])
