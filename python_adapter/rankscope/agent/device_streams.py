"""Reading a device's memory without waiting for the program's work on it, and without disturbing a graph's capture."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

_ROOM = 128 << 20
_POOL = 32  # torch hands out its streams in turn from pools of this size


def refusal(tensor: Any) -> str:
    """Why a tensor on a device is not to be read now; empty when it may be. Called on the thread that shows it."""
    module = _module(tensor)
    if module is None:
        return f"values not read on {_device(tensor).type}"
    if getattr(module, "_is_in_bad_fork", bool)():
        return "values not read: the device was taken into use before the fork"
    if not module.is_initialized():
        return "values not read: the device is not in use by this process"
    return "values not read: a graph is being captured" if _captures(module) else ""


def current(tensor: Any) -> Any:
    """The stream on which the calling thread works with the tensor's device."""
    module: Any = _module(tensor)
    return module.current_stream(_device(tensor))


@contextlib.contextmanager
def own(tensor: Any, theirs: Any, until: float) -> Iterator[str]:
    """Within, the device's work runs on a stream that nothing else occupies; gives a note on what is read.

    Waits until ``until`` (monotonic) for the program's stream to have written what it will write.
    Raises ``RuntimeError`` when the device has no room or no idle stream.
    """
    module: Any = _module(tensor)
    device = _device(tensor)
    with module.device(device):
        if module.mem_get_info(device)[0] < _ROOM:
            raise RuntimeError("the device's memory is full")
        while not (is_done := theirs.query()) and time.monotonic() < until:
            time.sleep(0.001)
        with module.stream(_idle_stream(module, device)):
            yield "" if is_done else "read while its stream is still at work"


def _idle_stream(module: Any, device: Any) -> Any:
    """A stream of the pool that no pending work holds: another user of the same pool may hang."""
    for _ in range(_POOL):
        stream = module.Stream(device=device, priority=-1)
        if stream.query():
            return stream
    raise RuntimeError("every stream of the device is at work")


def _captures(module: Any) -> bool:
    """Whether this thread's stream, or the one torch captures graphs on, is recording."""
    is_capturing = getattr(module, "is_current_stream_capturing", None)
    if is_capturing is None:
        return False
    if is_capturing():
        return True
    stream = getattr(getattr(module, "graph", None), "default_capture_stream", None)
    if stream is None:
        return False
    with module.stream(stream):
        return bool(is_capturing())


def _module(tensor: Any) -> Any:
    """``torch.cuda`` or its like; ``None`` where there is none with streams."""
    module = getattr(sys.modules["torch"], _device(tensor).type, None)
    needed = ("Stream", "stream", "current_stream", "device", "mem_get_info", "is_initialized")
    return module if all(hasattr(module, name) for name in needed) else None


def _device(tensor: Any) -> Any:
    return sys.modules["torch"].Tensor.device.__get__(tensor)
