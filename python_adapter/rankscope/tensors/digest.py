"""A digest of an array's values that notices one bit and one swap."""

from __future__ import annotations

import ctypes
import hashlib
import math
import sys
import time
from collections.abc import Iterable
from typing import Any

from rankscope.tensors import device_kernel
from rankscope.tensors.pieces import pieces

_BYTES = 1 << 25
_DEVICE_PIECE = 1 << 22
_ODD = -7046029254386353131  # of splitmix64 (2**64 over the golden ratio) and its finalizer, as signed numbers
_OTHER_ODD = -4658895280553007687


def digest_of(array: Any, until: float) -> str:
    """``algorithm:hex`` of the values in row-major order, whatever their layout in memory.

    On a CPU xxh3_128, where xxhash is absent blake2b, over the memory itself. On a device a position-dependent sum
    made there (``sum64``), which is equal only to one made on a device. Empty when the time ``until`` (monotonic) is
    over first.
    """
    if _is_on_device(array):
        return _on_device(array, until)
    name, hasher = _hasher()
    for piece in pieces(array, max(1, _BYTES // _element_size(array))):
        _update(hasher, piece)
        if time.monotonic() > until:
            return ""
    return f"{name}:{hasher.hexdigest()}"


def digest_of_all(arrays: Iterable[Any]) -> str:
    """One digest of many arrays in their order; of those on a device only their sums come here, all at once."""
    name, hasher = _hasher()
    sums: dict[Any, list[Any]] = {}
    for array in arrays:
        if _is_on_device(array):
            sums.setdefault(array.device, []).append(_device_sum(array, math.inf))
            continue
        for piece in pieces(array, max(1, _BYTES // _element_size(array))):
            _update(hasher, piece)
    for of_device in sums.values():
        _update(hasher, sys.modules["torch"].stack(of_device).cpu())
    return f"{name}:{hasher.hexdigest()}"


def digests_of_pieces(array: Any, size: int) -> bytes:
    """The digests, 16 bytes each, of the pieces of at most ``size`` elements; of a device's a copy is made here."""
    found = []
    for piece in pieces(array, size):
        _, hasher = _hasher()
        _update(hasher, piece.cpu() if _is_on_device(piece) else piece)
        found.append(hasher.digest())
    return b"".join(found)


def _element_size(array: Any) -> int:
    return int(array.element_size() if hasattr(array, "element_size") else array.itemsize)


def _is_on_device(array: Any) -> bool:
    return hasattr(array, "numel") and array.device.type != "cpu"


def _hasher() -> tuple[str, Any]:
    try:
        import xxhash
    except ImportError:
        return "blake2b", hashlib.blake2b(digest_size=16)
    return "xxh3_128", xxhash.xxh3_128()


def _update(hasher: Any, piece: Any) -> None:
    if not hasattr(piece, "data_ptr"):
        hasher.update(sys.modules["numpy"].ascontiguousarray(piece).view("uint8"))
        return
    piece = piece.contiguous()  # kept alive while its memory is read
    hasher.update((ctypes.c_char * (piece.numel() * piece.element_size())).from_address(piece.data_ptr()))


def _on_device(array: Any, until: float) -> str:
    total = _device_sum(array, until)
    return "" if total is None else f"sum64:{int(total.item()) % (1 << 64):016x}"


def _device_sum(array: Any, until: float) -> Any:
    """The bits of each element mixed with its position, summed up modulo 2**64; ``None`` when the time was over."""
    torch: Any = sys.modules["torch"]
    flat = torch.view_as_real(array.resolve_conj()) if array.is_complex() else array
    if flat.is_contiguous():
        total = device_kernel.sum_of(_as_integers(torch, flat).reshape(-1), _ODD, _OTHER_ODD)
        if total is not None:
            return total
    total, start = torch.zeros((), dtype=torch.int64, device=array.device), 0
    for piece in pieces(flat, _DEVICE_PIECE):
        bits = _as_integers(torch, piece.contiguous()).long()
        place = torch.arange(start, start + len(bits), device=array.device, dtype=torch.int64)
        mixed = (bits ^ (place * _ODD)) * _OTHER_ODD
        mixed = (mixed ^ (mixed >> 32)) * _ODD
        total += (mixed ^ (mixed >> 29)).sum()
        start += len(bits)
        if time.monotonic() > until:
            return None
    return total


def _as_integers(torch: Any, array: Any) -> Any:
    return array.view(getattr(torch, f"int{8 * array.element_size()}"))
