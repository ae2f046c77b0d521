"""The digest of a device's tensor in one read of it: by a kernel of Triton, which torch for CUDA brings along.

Without it :mod:`rankscope.tensors.digest` computes the same from torch's own operations, in many reads.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

_BLOCK = 1024
_ROUNDS = 8
_failed: list[str] = []

tl: Any = None  # triton.language, where a kernel's source looks for it


def sum_of(bits: Any, odd: int, other_odd: int) -> Any:
    """The sum modulo 2**64 of a contiguous row of integers, each mixed with its place: a tensor of one element.

    ``None`` where no kernel can be made.
    """
    kernel = None if _failed or bits.device.type != "cuda" else _kernel()
    if kernel is None:
        return None
    torch: Any = sys.modules["torch"]
    programs = max(1, -(-bits.numel() // (_BLOCK * _ROUNDS)))
    sums = torch.empty(programs, dtype=torch.int64, device=bits.device)
    try:
        with torch.cuda.device(bits.device):
            kernel[(programs,)](bits, sums, bits.numel(), odd, other_odd, _BLOCK, _ROUNDS)
    except Exception as e:  # no compiler here, or an unknown device
        _failed.append(str(e))
        return None
    return sums.sum()


@functools.cache
def _kernel() -> Any:
    global tl
    try:
        import triton
        import triton.language as tl
    except Exception:  # not there, or not for this machine
        return None

    @triton.jit  # type: ignore[untyped-decorator]
    def mix(bits, sums, count, odd: tl.constexpr, other_odd: tl.constexpr, block: tl.constexpr, rounds: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202 - Triton's own language
        program = tl.program_id(0).to(tl.int64)
        total = tl.zeros((block,), dtype=tl.int64)
        for at in range(rounds):
            place = (program * rounds + at) * block + tl.arange(0, block).to(tl.int64)
            is_inside = place < count
            value = tl.load(bits + place, mask=is_inside, other=0).to(tl.int64)
            mixed = (value ^ (place * odd)) * other_odd
            mixed = (mixed ^ (mixed >> 32)) * odd
            total += tl.where(is_inside, mixed ^ (mixed >> 29), 0)
        tl.store(sums + program, tl.sum(total, axis=0))

    return mix
