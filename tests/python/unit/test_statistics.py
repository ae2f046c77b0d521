"""Statistics read piece by piece are those of the whole, whatever the strides and the size of a piece."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.tensors import statistics
from rankscope.tensors.pieces import pieces

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    order=st.randoms(use_true_random=False),
    step=st.integers(1, 3),
    spoiled=st.lists(st.sampled_from([math.nan, math.inf, -math.inf, 1e30, -1e30]), max_size=3),
    size=st.integers(1, 40),
)
def test_statistics_equal_those_of_a_naive_count(
    shape: list[int], order: Any, step: int, spoiled: list[float], size: int
) -> None:
    """For any strides, any size of a piece, in any order."""
    tensor = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(step))
    for at, number in enumerate(spoiled):
        tensor.view(-1)[(at * 5) % tensor.numel()] = number
    axes = list(range(len(shape)))
    order.shuffle(axes)
    tensor = tensor.permute(axes)[::step]
    flat = tensor.reshape(-1)
    assert torch.equal(torch.cat(list(pieces(tensor, size))).nan_to_num(), flat.nan_to_num())
    assert all(len(piece) <= size for piece in pieces(tensor, size))

    kept = statistics._CPU_PIECE
    statistics._CPU_PIECE = size
    try:
        found = statistics.measure(tensor, math.inf, with_norm=True)
    finally:
        statistics._CPU_PIECE = kept
    finite = flat[flat.isfinite()]
    assert (found.nan, found.inf) == (int(flat.isnan().sum()), int(flat.isinf().sum()))
    assert found.seen == flat.numel()
    if len(finite):
        assert (found.low, found.high) == (finite.min().item(), finite.max().item())
        scale = finite.abs().max().item() or 1.0
        assert found.mean == pytest.approx(finite.mean().item(), abs=1e-12 * scale)
        assert math.sqrt(found.squares) == pytest.approx(finite.norm().item())
