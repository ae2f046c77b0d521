"""What a rank posts of its entries: first one line that is equal where all is well, the whole list only where not."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import msgpack

from rankscope.checks.replicas import ALONE
from rankscope.checks.structure import SHARD, Entry
from rankscope.tensors.digest import digest_of, digest_of_all

# As they stand in a post's list of entries.
NAME, KIND, SHAPE, DTYPE, EXTRA, PEERS, DIGEST, NOTE, LOCAL = range(9)


def line(entries: Sequence[Entry]) -> dict[str, Any]:
    """``structure``, a digest of what must be the same everywhere; ``roots``, a digest of the values per ``peers``.

    Reads all memory once.
    """
    structure = hashlib.blake2b(digest_size=16)
    parts: dict[str, list[Any]] = {}
    for entry in entries:
        if entry.kind != SHARD:
            structure.update(msgpack.packb(entry.structure))
        if entry.is_read and entry.peers != ALONE:
            parts.setdefault(entry.peers, []).extend(entry.parts)
    roots = {peers: digest_of_all(arrays) for peers, arrays in parts.items()}
    return {"structure": structure.hexdigest(), "roots": roots}


def whole(entries: Sequence[Entry]) -> list[list[Any]]:
    """Every entry with a digest of its own."""
    return [
        [
            entry.name,
            entry.kind,
            list(entry.shape),
            entry.dtype,
            entry.extra,
            entry.peers,
            _digest(entry) if entry.is_read and entry.peers != ALONE else "",
            entry.note,
            repr([tuple(part.shape) for part in entry.parts]) if entry.peers else "",
        ]
        for entry in entries
    ]


def _digest(entry: Entry) -> str:
    return " ".join(digest_of(part, math.inf) for part in entry.parts)
