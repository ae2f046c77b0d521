"""A device is read on an idle stream, while nothing is captured; what a GPU does here is tested where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rankscope.agent import device_streams, tensors

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


class FakeStream:
    def __init__(self, module: FakeCuda, device: Any = None, priority: int = 0) -> None:
        self.is_idle = module.idle.pop(0) if module.idle else True

    def query(self) -> bool:
        return self.is_idle


class FakeCuda:
    """What is used of ``torch.cuda``."""

    def __init__(self, idle: list[bool], free: int = 1 << 40) -> None:
        self.idle, self.free = idle, free
        self.used: list[FakeStream] = []
        self.is_capturing = False

    def Stream(self, **options: Any) -> FakeStream:  # noqa: N802 - as torch names it
        return FakeStream(self, **options)

    @contextmanager
    def stream(self, stream: FakeStream) -> Iterator[None]:
        self.used.append(stream)
        yield

    @contextmanager
    def device(self, device: Any) -> Iterator[None]:
        yield

    def mem_get_info(self, device: Any) -> tuple[int, int]:
        return self.free, 1 << 40

    def is_initialized(self) -> bool:
        return True

    def current_stream(self, device: Any) -> Any:
        return "theirs"

    def is_current_stream_capturing(self) -> bool:
        return self.is_capturing


@pytest.fixture
def on_device(monkeypatch: pytest.MonkeyPatch) -> Any:
    def with_module(module: FakeCuda) -> Any:
        monkeypatch.setattr(torch, "privateuseone", module, raising=False)
        return torch._C._acc.create_empty_tensor([2], torch.float32)

    return with_module


def test_a_stream_that_a_collective_occupies_is_not_used(on_device: Any) -> None:
    module = FakeCuda(idle=[True, False, False, True])
    tensor = on_device(module)
    assert device_streams.refusal(tensor) == ""
    assert device_streams.current(tensor) == "theirs"
    with device_streams.own(tensor, module.Stream(), 0.0) as note:
        assert note == ""
    assert [stream.is_idle for stream in module.used] == [True]


def test_pending_work_is_waited_for_and_then_told(on_device: Any) -> None:
    module = FakeCuda(idle=[False])
    tensor = on_device(module)
    with device_streams.own(tensor, module.Stream(), 0.0) as note:
        assert note == "read while its stream is still at work"


def test_a_full_device_and_a_wholly_busy_one(on_device: Any) -> None:
    full = FakeCuda([], free=1)
    with pytest.raises(RuntimeError, match="full"), device_streams.own(on_device(full), full.Stream(), 0.0):
        pass
    busy = FakeCuda([False] * 100)
    with pytest.raises(RuntimeError, match="at work"), device_streams.own(on_device(busy), busy.Stream(), 0.0):
        pass


def test_not_while_a_graph_is_captured(on_device: Any) -> None:
    module = FakeCuda([])
    tensor = on_device(module)
    module.is_capturing = True
    assert tensors.text(tensor).endswith("values not read: a graph is being captured")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_on_a_gpu() -> None:
    tensor = torch.arange(1 << 24, device="cuda", dtype=torch.float32)
    assert tensors.text(tensor).startswith(
        "Tensor 16777216 float32 cuda:0 · min 0 max 1.678e+07 mean 8.389e+06 · NaN 0"
    )
    swapped = tensor.clone()
    swapped[0], swapped[1] = 1.0, 0.0
    assert tensors.digest(tensor).startswith("sum64:")
    assert tensors.digest(tensor) == tensors.digest(tensor.clone()) != tensors.digest(swapped)
    graph, pool = torch.cuda.CUDAGraph(), torch.ones(8, device="cuda")
    with torch.cuda.graph(graph):
        assert "a graph is being captured" in tensors.text(pool * 2)
    graph.replay()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_on_a_gpu_whose_stream_hangs() -> None:
    """A kernel that runs for seconds on the program's stream stands for a collective that hangs."""
    tensor = torch.ones(1 << 20, device="cuda")
    torch.cuda.synchronize()
    torch.cuda._sleep(20_000_000_000)
    assert tensors.text(tensor, 1.0).endswith("NaN 0 Inf 0 · read while its stream is still at work")
    assert not torch.cuda.current_stream().query()
    torch.cuda.synchronize()
