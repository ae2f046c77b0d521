"""Counts what this process asks of its process groups where torch's own recorder does not.

That is every send and receive, and without a recorder every collective of torch's public calls, too: those that C++
starts by itself (DDP's reducer) are unknown then. A call costs about a microsecond; works are held by weak reference.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
import time
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any

# The public calls and the argument that holds what this rank gives (of scatter: gets).
_COLLECTIVES = {
    "all_reduce": "tensor",
    "all_reduce_coalesced": "tensors",
    "broadcast": "tensor",
    "reduce": "tensor",
    "all_gather": "tensor",
    "all_gather_into_tensor": "input_tensor",
    "all_gather_coalesced": "input_tensor_list",
    "gather": "tensor",
    "scatter": "tensor",
    "reduce_scatter": "input_list",
    "reduce_scatter_tensor": "input",
    "all_to_all": "input_tensor_list",
    "all_to_all_single": "input",
    "barrier": "",
}
_PEERS = {"isend": ("send", "dst"), "irecv": ("recv", "src")}
_MANY = 256

ANY_SOURCE = -1


@dataclass(slots=True, eq=False)
class Call:
    """One call under way. ``peer`` and ``tag`` are a send's or receive's; ``place``: where its thread was last."""

    kind: str
    group: str
    op: str
    seq: int
    sizes: list[list[int]]
    dtypes: list[str]
    peer: int
    tag: int
    thread: int
    began: float
    is_on_device: bool
    work: weakref.ref[Any] | None = None
    place: tuple[int, int] | None = None

    @property
    def is_done(self) -> bool:
        """Whether its work has ended, or nobody holds it any more."""
        if self.work is None:
            return False
        work = self.work()
        return work is None or bool(work.is_completed())


class Calls:
    """The calls of this process: how many of which, and which are under way."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str, int, int], int] = {}  # by kind, group, peer, tag
        self.device_peers = 0  # sends and receives of tensors on a device, whose works are not to be asked
        self._open: list[Call] = []
        self._prune_at = _MANY
        self._lock = threading.Lock()
        self._inside = threading.local()

    def wrap(self, module: ModuleType, *, collectives: bool) -> None:
        """Watch the sends and receives of ``distributed_c10d``; with ``collectives`` those as well."""
        for name, (kind, peer) in _PEERS.items():
            own = getattr(module, name, None)
            if own is not None:
                setattr(module, name, self._peer_call(module, own, kind, peer))
        for name, given in _COLLECTIVES.items() if collectives else ():
            own = getattr(module, name, None)
            if own is not None:
                setattr(module, name, self._collective_call(module, own, name, given))

    def forget(self) -> None:
        """In a forked child: the lock may be held by a thread that is gone, and no call is under way."""
        self._lock = threading.Lock()
        self._inside = threading.local()
        self._open.clear()
        self.counts.clear()

    def blocked(self, now: float, frames: Mapping[int, FrameType]) -> list[Call]:
        """Calls under way whose thread stands where it stood when this was asked last."""
        with self._lock:
            self._prune()
            opened = list(self._open)
        found = []
        for call in opened:
            frame = frames.get(call.thread)
            place = None if frame is None else (id(frame.f_code), frame.f_lasti)
            if place is not None and place == call.place and now > call.began:
                found.append(call)
            call.place = place
        return found

    def _open_one(self, call: Call) -> None:
        with self._lock:
            if len(self._open) >= self._prune_at:
                self._prune()
                self._prune_at = max(_MANY, 2 * len(self._open))
            self._open.append(call)

    def _prune(self) -> None:
        self._open = [call for call in self._open if not call.is_done]

    def _count(self, kind: str, group: str, peer: int, tag: int) -> int:
        key = (kind, group, peer, tag)
        with self._lock:
            self.counts[key] = number = self.counts.get(key, 0) + 1
        return number

    # --- sends and receives -----------------------------------------------------------------------

    def _peer_call(self, module: Any, own: Any, kind: str, peer_name: str) -> Any:
        names = ("tensor", peer_name, "group", "tag", f"group_{peer_name}")

        @functools.wraps(own)
        def call(*args: Any, **kwargs: Any) -> Any:
            work = own(*args, **kwargs)
            with contextlib.suppress(Exception):  # it was called as no torch that is known calls it; the work goes on
                self._note_peer(module, kind, work, {**dict(zip(names, args, strict=False)), **kwargs}, peer_name)
            return work

        return call

    def _note_peer(self, module: Any, kind: str, work: Any, given: dict[str, Any], peer_name: str) -> None:
        group = given.get("group") or module._get_default_group()
        is_on_device = given["tensor"].device.type != "cpu"
        if work is None and not is_on_device:
            return  # this rank is not in the group
        peer, tag = given.get(peer_name), int(given.get("tag") or 0)
        if peer is None:
            in_group = given.get(f"group_{peer_name}")
            peer = ANY_SOURCE if in_group is None else module.get_global_rank(group, in_group)
        name = str(group.group_name)
        number = self._count(kind, name, int(peer), tag)
        if is_on_device:
            self.device_peers += 1
            return
        call = _made(kind, name, kind, number, [given["tensor"]], int(peer), tag)
        call.work = weakref.ref(work)
        self._open_one(call)

    # --- collectives ------------------------------------------------------------------------------

    def _collective_call(self, module: Any, own: Any, name: str, given: str) -> Any:
        order = list(inspect.signature(own).parameters)

        @functools.wraps(own)
        def collective(*args: Any, **kwargs: Any) -> Any:
            call = None if getattr(self._inside, "depth", 0) else self._begin(module, name, given, order, args, kwargs)
            if call is None:
                return own(*args, **kwargs)
            self._inside.depth = 1
            work = None
            try:
                work = own(*args, **kwargs)
                return work
            finally:
                self._inside.depth = 0
                self._end(call, work)

        return collective

    def _begin(
        self, module: Any, name: str, given: str, order: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Call | None:
        try:
            arguments = {**dict(zip(order, args, strict=False)), **kwargs}
            group = str((arguments.get("group") or module._get_default_group()).group_name)
            tensors = arguments.get(given) if given else []
            tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
            call = _made("collective", group, name, self._count("collective", group, 0, 0), tensors)
        except Exception:  # what is wrong with the arguments is torch's to say
            return None
        self._open_one(call)
        return call

    def _end(self, call: Call, work: Any) -> None:
        """The call returns: it is over, or goes on as a work. One on a device is left to that device."""
        if hasattr(work, "is_completed") and not call.is_on_device:
            call.work = weakref.ref(work)
            return
        with self._lock, contextlib.suppress(ValueError):
            self._open.remove(call)


def _made(
    kind: str, group: str, op: str, seq: int, tensors: Iterable[Any], peer: int = ANY_SOURCE, tag: int = 0
) -> Call:
    tensors = list(tensors)
    sizes = [list(tensor.shape) for tensor in tensors]
    dtypes = [str(tensor.dtype).removeprefix("torch.") for tensor in tensors]
    is_on_device = any(tensor.device.type != "cpu" for tensor in tensors)
    return Call(kind, group, op, seq, sizes, dtypes, peer, tag, threading.get_ident(), time.monotonic(), is_on_device)
