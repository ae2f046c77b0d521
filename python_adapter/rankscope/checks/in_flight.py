"""Collectives that were begun and not waited for, and the memory that they may still write.

Known are those that were begun, with ``async_op`` or as ``isend`` and ``irecv``, after this was loaded.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankscope.checks.structure import Entry

SECONDS = 2.0
NOTE = "a collective that was begun may still write it"
_CALLS = (
    "all_reduce",
    "all_reduce_coalesced",
    "broadcast",
    "reduce",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_coalesced",
    "gather",
    "scatter",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "all_to_all",
    "all_to_all_single",
    "isend",
    "irecv",
)
_MANY = 64

_Range = tuple[int, int]
_works: list[tuple[Any, list[_Range]]] = []
_lock = threading.Lock()
_is_watching = False


def watch() -> None:
    """Note what is begun from now on; again is harmless."""
    global _is_watching
    if _is_watching:
        return
    _is_watching = True
    package, module = sys.modules["torch.distributed"], sys.modules["torch.distributed.distributed_c10d"]
    for name in _CALLS:
        own = getattr(module, name, None)
        if own is None:
            continue
        noting = _noting(own)
        for holder in (package, module):
            if getattr(holder, name, None) is own:
                setattr(holder, name, noting)


def settle(entries: Sequence[Entry]) -> None:
    """Wait, bounded, for what writes to these entries; where it goes on, a note says that it is not compared."""
    deadline = time.monotonic() + SECONDS
    for entry in entries if _pending() else ():
        ranges = list(_ranges(entry.parts))
        while any(_overlap(ranges, busy) for _, busy in _pending()):
            if time.monotonic() > deadline:
                entry.note = NOTE
                break
            time.sleep(0.001)


def awaited(value: Any) -> Any:
    """The result of torch's functional collective, waited for; ``None`` when it does not come in time."""
    torch: Any = sys.modules["torch"]
    results: list[Any] = []
    waiting = threading.Thread(
        target=lambda: results.append(torch.ops._c10d_functional.wait_tensor(value.elem)), daemon=True
    )
    waiting.start()
    waiting.join(SECONDS)
    return results[0] if results else None


def _noting(own: Any) -> Any:
    @functools.wraps(own)
    def call(*args: Any, **kwargs: Any) -> Any:
        work = own(*args, **kwargs)
        if work is not None and hasattr(work, "is_completed"):
            with _lock:
                if len(_works) >= _MANY:
                    _works[:] = [each for each in _works if not each[0].is_completed()]
                _works.append((work, list(_ranges([*args, *kwargs.values()]))))
        return work

    return call


def _pending() -> list[tuple[Any, list[_Range]]]:
    with _lock:
        _works[:] = [each for each in _works if not each[0].is_completed()]
        return list(_works)


def _ranges(values: Sequence[Any]) -> Iterator[_Range]:
    """The memory of all tensors in there."""
    tensor = sys.modules["torch"].Tensor
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _ranges(value)
        elif isinstance(value, tensor) and value.device.type != "meta":
            storage = value.untyped_storage()
            yield storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def _overlap(some: Sequence[_Range], others: Sequence[_Range]) -> bool:
    return any(begin < other_end and other_begin < end for begin, end in some for other_begin, other_end in others)
