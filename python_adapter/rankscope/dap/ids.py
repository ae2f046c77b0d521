"""One front's ids for what its members number each by themselves.

An editor sees one space of ids per session; every member counts from its own start.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import Generic, TypeVar

from rankscope.dap.messages import DapError

_K = TypeVar("_K", bound=Hashable)


class IdMap(Generic[_K]):
    """(member id, local id) ↔ an int that is never used again. ``noun`` stands in the error for a stale id."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._next = itertools.count(1)
        self._last = 0
        self._ids: dict[str, dict[_K, int]] = {}
        self._keys: dict[int, tuple[str, _K]] = {}

    def give(self, member: str, local: _K) -> int:
        """The id of a member's local id; a new one when it has none."""
        ids = self._ids.setdefault(member, {})
        if local not in ids:
            self._last = next(self._next)
            ids[local] = self._last
            self._keys[self._last] = (member, local)
        return ids[local]

    def find(self, number: object) -> tuple[str, _K]:
        """Whose it is. Raises :class:`DapError` for an id that is unknown or whose member has run on."""
        if isinstance(number, int) and number in self._keys:
            return self._keys[number]
        if isinstance(number, int) and 0 < number <= self._last:
            raise DapError(f"This {self._noun} is gone: its rank has run on since.", "stale-id")
        raise DapError(f"There is no {self._noun} {number!r} in this session.", "unknown-id")

    def of(self, member: str) -> list[int]:
        """All ids of a member."""
        return list(self._ids.get(member, {}).values())

    def first(self, member: str) -> _K | None:
        """The local id of a member that was given an id first, of those that are left."""
        return next(iter(self._ids.get(member, {})), None)

    def rename(self, member: str, old: _K, new: _K) -> None:
        """Let ``new`` go by the id that ``old`` has, when ``old`` has one and ``new`` none."""
        ids = self._ids.get(member, {})
        if new in ids or old not in ids:
            return
        self._keys[ids[old]] = (member, new)
        self._ids[member] = {new if local == old else local: number for local, number in ids.items()}

    def drop(self, member: str) -> None:
        """Forget all that a member had."""
        for number in self._ids.pop(member, {}).values():
            del self._keys[number]


class Ids:
    """All id spaces of one front."""

    def __init__(self) -> None:
        self.threads: IdMap[int] = IdMap("thread")
        self.frames: IdMap[int] = IdMap("frame")
        self.variables: IdMap[int] = IdMap("variable")
        self.sources: IdMap[int] = IdMap("source")
        self.step_targets: IdMap[int] = IdMap("step-in target")
        self.goto_targets: IdMap[tuple[str, int]] = IdMap("goto target")
        self.breakpoints: IdMap[int] = IdMap("breakpoint")

    def resumed(self, member: str) -> None:
        """A member runs on: its frames, variables and step-in targets are gone."""
        self.frames.drop(member)
        self.variables.drop(member)
        self.step_targets.drop(member)
