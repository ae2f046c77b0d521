"""The kernel that makes a device's digest computes what torch's own operations do."""

from __future__ import annotations

import math

import pytest

from rankscope.checks.fingerprint import line
from rankscope.checks.structure import entries
from rankscope.tensors import device_kernel, digest

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.gpu]


@pytest.fixture(autouse=True)
def _needs_a_gpu() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU")


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float64", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("count", [0, 1, 1023, 100_000])
def test_the_kernel_and_torch_agree(name: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = torch.arange(count, device="cuda").to(getattr(torch, name))
    by_kernel = digest.digest_of(tensor, math.inf)
    assert device_kernel._kernel() is not None and not device_kernel._failed
    monkeypatch.setattr(device_kernel, "_failed", ["off"])
    assert digest.digest_of(tensor, math.inf) == by_kernel


def test_one_bit_and_a_swap_show_in_the_line_of_a_model() -> None:
    model = torch.nn.Linear(300, 300, device="cuda")
    before = line(entries(model))
    with torch.no_grad():
        model.weight.view(torch.int32)[7, 9] ^= 1
        flipped = line(entries(model))
        model.weight.view(torch.int32)[7, 9] ^= 1
        assert line(entries(model)) == before
        model.weight[0, [0, 1]] = model.weight[0, [1, 0]]
    assert len({each["roots"][""] for each in (before, flipped, line(entries(model)))}) == 3
