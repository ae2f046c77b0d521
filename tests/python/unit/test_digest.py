"""A digest notices one bit and one swap, on a CPU and by the code that a device runs."""

from __future__ import annotations

import math
import sys

import pytest

from rankscope.agent import tensors
from rankscope.tensors.digest import _on_device

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def test_a_digest_is_of_the_values_in_order() -> None:
    tensor = torch.randn(60, 37)
    transposed = tensor.t().contiguous().t()
    assert tensors.digest(tensor) == tensors.digest(transposed) == tensors.digest(tensor.numpy())
    assert tensors.digest(tensor).startswith("xxh3_128:")
    swapped = tensor.clone()
    swapped[0, 0], swapped[0, 1] = tensor[0, 1], tensor[0, 0]
    ulp = tensor.clone()
    ulp[5, 5] = torch.nextafter(ulp[5, 5], torch.tensor(math.inf))
    assert len({tensors.digest(each) for each in (tensor, swapped, ulp, tensor[:59], -tensor)}) == 5


def test_a_digest_across_pieces() -> None:
    wide = torch.arange(1 << 24, dtype=torch.float64).view(1 << 12, 1 << 12)
    assert tensors.digest(wide) == tensors.digest(wide.t().contiguous().t())
    assert tensors.digest(wide[:, ::2]) == tensors.digest(wide[:, ::2].contiguous())
    assert tensors.digest(torch.arange(10)[::3]) == tensors.digest(torch.tensor([0, 3, 6, 9]))


def test_a_digest_without_xxhash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xxhash", None)
    assert tensors.digest(torch.ones(3)).startswith("blake2b:")


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float64", "int64", "uint8", "bool", "complex64"])
def test_the_digest_of_a_device_notices_order_and_single_bits(name: str) -> None:
    """Made here on a CPU, by the code that a device runs."""
    tensor = torch.arange(60).view(6, 10).to(getattr(torch, name))
    swapped = tensor.clone()
    swapped[0, 0], swapped[0, 1] = tensor[0, 1], tensor[0, 0]
    digest = _on_device(tensor, math.inf)
    assert digest == _on_device(tensor.t().contiguous().t(), math.inf)
    assert digest != _on_device(swapped, math.inf)
    assert digest != _on_device(torch.cat([tensor, torch.zeros_like(tensor)]), math.inf)
