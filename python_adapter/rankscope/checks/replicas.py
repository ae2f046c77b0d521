"""Which ranks ought to hold the same values of a tensor: all of the group, unless it is a shard.

``peers`` is a text that is equal exactly for those: empty for all of the group, the global ranks of a DTensor's
replicas, or a word that no other rank has for a shard that stands alone.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable
from typing import Any

ALONE = "alone"
_FLAT = "_fsdp_flattened"
# What marks an ordinary tensor as a shard: of FSDP (version 1), of DeepSpeed's ZeRO-3, of Megatron's tensor and expert
# parallelism. With ``None`` it is there at all.
_MARKS = ((_FLAT, True), ("ds_tensor", None), ("tensor_model_parallel", True), ("allreduce", False))

_known: dict[int, tuple[weakref.ref[Any], str]] = {}  # peers of ordinary tensors, by identity


def is_tensor(value: Any) -> bool:
    """Whether it is a torch tensor, whatever its class."""
    return isinstance(value, sys.modules["torch"].Tensor)


def of_dtensor(value: Any) -> tuple[str, tuple[int, ...], str]:
    """``peers``, where the local shard begins in the whole, and why it is not compared, if it is not."""
    spec = object.__getattribute__(value, "_spec")
    mesh, placements = spec.mesh, spec.placements
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return ALONE, (), "this rank is not in its mesh"
    index = tuple(
        slice(None) if placement.is_replicate() else at for placement, at in zip(placements, coordinate, strict=True)
    )
    ranks = sorted(mesh.mesh[index].flatten().tolist())
    if len(ranks) == 1:
        return ALONE, (), ""
    return ",".join(map(str, ranks)), _offset(value), ""


def _offset(value: Any) -> tuple[int, ...]:
    try:
        from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
    except ImportError:
        return ()
    spec = object.__getattribute__(value, "_spec")
    try:
        _, offset = compute_local_shape_and_global_offset(spec.shape, spec.mesh, spec.placements)
    except Exception:  # strided shards have no such offset
        return ()
    return tuple(int(at) for at in offset)


def of_plain(value: Any) -> str:
    """``peers`` of a tensor that is no DTensor."""
    reference, peers = _known.get(id(value), (None, ""))
    if reference is not None and reference() is value:
        return peers
    if type(value).__name__ == "FlatParameter":
        return ALONE
    return ALONE if any(_says(value, *mark) for mark in _MARKS) else ""


def _says(value: Any, name: str, meaning: Any) -> bool:
    return hasattr(value, name) and (meaning is None or getattr(value, name) is meaning)


def hold(value: Any, peers: str) -> None:
    """From now on these are the peers of an ordinary tensor."""
    key = id(value)
    _known[key] = (weakref.ref(value, lambda gone: _forget(key, gone)), peers)


def _forget(key: int, gone: Any) -> None:
    if _known.get(key, (None,))[0] is gone:
        del _known[key]


def learn_module(module: Any) -> None:
    """FSDP (version 1) holds shards in ordinary tensors: note which ranks have the same one."""
    fsdp: Any = sys.modules.get("torch.distributed.fsdp.fully_sharded_data_parallel")
    if fsdp is None:
        return
    for each in module.modules():
        if isinstance(each, fsdp.FullyShardedDataParallel):
            peers = _of_fsdp(each)
            for parameter in each.parameters():
                if peers is not None and (hasattr(parameter, _FLAT) or type(parameter).__name__ == "FlatParameter"):
                    hold(parameter, peers)


def _of_fsdp(module: Any) -> str | None:
    distributed: Any = sys.modules["torch.distributed"]
    strategy = str(getattr(module, "sharding_strategy", ""))
    if "NO_SHARD" in strategy:
        return ""
    across = getattr(module, "_inter_node_pg", None) if "HYBRID" in strategy else None
    if across is None:
        return ALONE
    return ",".join(map(str, sorted(distributed.get_process_group_ranks(across))))


def inherit(parameter: Any, tensors: Iterable[Any]) -> None:
    """What an optimizer keeps of a shard is a shard, too."""
    peers = of_plain(parameter)
    for tensor in tensors if peers else ():
        if is_tensor(tensor) and type(tensor).__name__ != "DTensor":
            hold(tensor, peers)
