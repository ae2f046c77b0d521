"""Append-only files of a record: each entry a msgpack map in a frame of its own, whatever happens to the rest.

A frame is ``mark (4 bytes) · length (4, big-endian) · CRC-32 (4) · msgpack map``. The first
entry says what the file is: ``{"rankscope": VERSION, "kind": …}``. A writer that dies in the
middle of an entry tears only that one; a reader finds the next mark and counts what it skipped.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack

VERSION = 1
MAX_ENTRY = 64 << 20
_MARK = b"\xa7RS\n"
_HEAD = struct.Struct(">4sII")

Entry = dict[str, Any]


def pack(entry: Entry) -> bytes:
    """One entry as it stands in a file."""
    body: bytes = msgpack.packb(entry, use_bin_type=True, default=str)
    return _HEAD.pack(_MARK, len(body), zlib.crc32(body)) + body


class Journal:
    """Appends to one file, within ``max_bytes``; when it is full the oldest half goes, and that is counted in it.

    A write that fails (a full disk) loses that entry only: it is counted in ``lost`` and
    ``failure`` has the reason; nothing is raised.
    """

    def __init__(self, path: Path, kind: str, max_bytes: int = 64 << 20) -> None:
        self.path = path
        self.lost = 0
        self.failure = ""
        self._kind = kind
        self._max = max_bytes
        self._size = -1

    def append(self, entry: Entry) -> bool:
        """Write an entry through to the file. Whether that succeeded."""
        frame = pack(entry)
        try:
            if self._size < 0:
                self._begin()
            if self._size + len(frame) > self._max:
                self._drop_oldest(len(frame))
            with self.path.open("ab") as file:
                file.write(frame)
            self._size += len(frame)
        except OSError as e:
            self.lost += 1
            self.failure = e.strerror or str(e)
            self._size = -1
            return False
        return True

    def _begin(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            self.path.write_bytes(pack({"rankscope": VERSION, "kind": self._kind}))
        self._size = self.path.stat().st_size

    def _drop_oldest(self, needed: int) -> None:
        found = read(self.path, self._kind)
        room = max(0, self._max // 2 - needed)
        kept: list[bytes] = []
        size = 0
        for entry in reversed(found.entries):
            frame = pack(entry)
            if size + len(frame) > room:
                break
            kept.append(frame)
            size += len(frame)
        dropped = found.dropped + len(found.entries) - len(kept)
        head = pack({"rankscope": VERSION, "kind": self._kind, "dropped": dropped})
        new = self.path.with_suffix(".new")
        new.write_bytes(head + b"".join(reversed(kept)))
        new.replace(self.path)
        self._size = len(head) + size


@dataclass
class Contents:
    """What could be read of a file. ``problems`` are sentences for a person; empty when all is sound."""

    entries: list[Entry] = field(default_factory=list)
    dropped: int = 0
    problems: list[str] = field(default_factory=list)


def read(path: Path, kind: str) -> Contents:
    """Every sound entry of a file. A file that is absent, torn, foreign or newer is no error: it is told."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Contents()
    except OSError as e:
        return Contents(problems=[f"{path.name} cannot be read: {e.strerror or e}."])
    return read_bytes(data, path.name, kind)


def read_bytes(data: bytes, name: str, kind: str, *, is_whole: bool = True) -> Contents:
    """The same of a file's content, or of its beginning, whose end is torn as a matter of course."""
    found = Contents()
    skipped = 0
    head: Entry | None = None
    for entry in _entries(data):
        if isinstance(entry, int):
            skipped += entry
        elif head is None and "rankscope" in entry:
            head = entry
        else:
            found.entries.append(entry)
    if skipped and is_whole:
        found.problems.append(f"{name}: {skipped:,} bytes are damaged and were skipped.")
    if head is None:
        found.problems.append(f"{name} does not begin like a record's file.")
        return found
    dropped = head.get("dropped", 0)
    found.dropped = dropped if isinstance(dropped, int) else 0
    if head.get("kind") != kind:
        found.problems.append(f"{name} holds {head.get('kind')!r}, not {kind!r}.")
        found.entries.clear()
    version = head.get("rankscope")
    if not isinstance(version, int) or version > VERSION:
        found.problems.append(f"{name} is of a newer version ({version}); what is unknown in it is left out.")
    return found


def _entries(data: bytes) -> Iterator[Entry | int]:
    """Entries in order, and between them the number of bytes that are none."""
    at = 0
    while at < len(data):
        entry, end = _entry_at(data, at)
        if entry is not None:
            yield entry
            at = end
            continue
        following = data.find(_MARK, at + 1)
        following = len(data) if following < 0 else following
        yield following - at
        at = following


def _entry_at(data: bytes, at: int) -> tuple[Entry | None, int]:
    if len(data) - at < _HEAD.size:
        return None, at
    mark, length, crc = _HEAD.unpack_from(data, at)
    start = at + _HEAD.size
    body = data[start : start + length]
    if mark != _MARK or length > MAX_ENTRY or len(body) < length or zlib.crc32(body) != crc:
        return None, at
    try:
        entry = msgpack.unpackb(body, raw=False, strict_map_key=False)
    except Exception:  # msgpack raises many kinds for what is no msgpack
        return None, at
    return (entry, start + length) if isinstance(entry, dict) else (None, at)
