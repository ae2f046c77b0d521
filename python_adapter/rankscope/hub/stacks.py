"""Stacks of many ranks folded into one prefix tree, with the rank set on every edge.

Pure: knows members by number only. Equal answers are read once and inserted once, so that a thousand ranks that
stand in the same few places cost no more than these places.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import msgpack

Frame = tuple[str, str, int, str]
"""Name, path, line (from 1), kind: ``own``, ``library`` or ``native``."""

_MAX_PACKED = 4 << 20
_HEAD_FRAMES, _TAIL_FRAMES = 150, 50
_MAX_DEPTH = 250  # more than an agent sends; as JSON it is twice as many levels
_MAX_TEXT = 1000
_LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python3.")
_NUMBER = re.compile(r"[-_ ]?\d+(_\d+)*")
_STATES = ("paused", "blocked", "running")


@dataclass(frozen=True)
class Thread:
    """One thread of one member: its frames outermost first. The main thread's name is empty."""

    name: str
    call: str
    frames: tuple[Frame, ...]

    @property
    def innermost_own(self) -> int | None:
        """The number of the frame that a person would look at."""
        own = (at for at in range(len(self.frames) - 1, -1, -1) if self.frames[at][3] == "own")
        return next(own, None)


class Reader:
    """Reads agents' answers, equal ones once. ``in_client`` maps a member's path to the client's."""

    def __init__(self, in_client: Callable[[str], str]) -> None:
        self._in_client = in_client
        self._known: dict[bytes, list[Thread]] = {}

    def read(self, answer: dict[str, Any]) -> list[Thread]:
        """The threads of an answer to ``stacks``. Raises ``ValueError`` for one that cannot be read."""
        packed = answer.get("packed")
        try:
            if not isinstance(packed, bytes):
                return [self._plain(thread) for thread in answer["threads"]]
            if packed not in self._known:
                self._known[packed] = self._unpacked(packed)
            return self._known[packed]
        except (KeyError, TypeError, IndexError, AttributeError, ValueError, msgpack.UnpackException) as e:
            raise ValueError("its agent sent stacks that cannot be read") from e

    def _unpacked(self, packed: bytes) -> list[Thread]:
        if len(packed) > _MAX_PACKED:
            raise ValueError(f"{len(packed)} bytes of stacks")
        paths, codes, threads, left_out = msgpack.unpackb(packed)
        places = [self._in_client(_text(path)) for path in paths]
        named = [(_text(name), places[at], "own" if is_own else "library") for name, at, is_own in codes]
        found = []
        for name, call, flat in threads:
            if len(flat) > 2 * _MAX_DEPTH:
                raise ValueError(f"a stack of {len(flat) // 2} frames")
            frames = tuple(
                (named[code][0], named[code][1], int(line), named[code][2])
                for code, line in zip(flat[::2], flat[1::2], strict=True)
            )
            found.append(Thread(common_name(_text(name)), _text(call), frames))
        if left_out:
            found.append(Thread(f"… {int(left_out)} threads left out", "", ()))
        return found

    def _plain(self, thread: dict[str, Any]) -> Thread:
        """As the record of a run has it: innermost first."""
        frames = [
            (_text(frame["name"]), self._in_client(_text(frame["path"])), int(frame["line"]), kind_of(frame["path"]))
            for frame in reversed(thread["frames"])
        ]
        return Thread("" if thread["is_main"] else common_name(_text(thread["thread"])), "", bounded(frames))


def bounded(frames: list[Frame]) -> tuple[Frame, ...]:
    """Of a very deep stack both ends, and between them how much is left out: as the agents do."""
    left_out = len(frames) - _HEAD_FRAMES - _TAIL_FRAMES
    if left_out <= 0:
        return tuple(frames)
    return (*frames[:_HEAD_FRAMES], (f"… {left_out} frames left out", "", 0, "library"), *frames[-_TAIL_FRAMES:])


def kind_of(path: str) -> str:
    """Whether a file is a ``library`` or the person's ``own``, as far as its place tells."""
    is_library = not path or path.startswith("<") or any(folder in path for folder in _LIBRARIES)
    return "library" if is_library else "own"


def common_name(thread: str) -> str:
    """``Thread-3 (serve)`` and ``Thread-4 (serve)`` are the same to a person."""
    return _NUMBER.sub("", thread) or thread


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a {type(value).__name__} where a text is due")
    return value[:_MAX_TEXT]


class _Node:
    """One frame at one place in the tree, and who is there.

    ``ends``: state and call of those whose last own frame it is; ``variables``: theirs, by member.
    """

    __slots__ = ("_is_shared", "children", "ends", "frame", "members", "variables")

    def __init__(self, frame: Frame, members: dict[int, None]) -> None:
        self.frame = frame
        self.members = members
        self._is_shared = True  # with the nodes above and below
        self.children: dict[Frame, _Node] = {}
        self.ends: set[tuple[str, str]] | None = None
        self.variables: dict[int, list[dict[str, str]]] | None = None

    def join(self, who: dict[int, None]) -> None:
        """These members are here, too."""
        if self._is_shared:
            self.members = dict(self.members)
            self._is_shared = False
        self.members.update(who)

    def below(self, frame: Frame, who: dict[int, None]) -> _Node:
        """The child for a frame, with these members in it."""
        child = self.children.get(frame)
        if child is None:
            child = self.children[frame] = _Node(frame, who)
        else:
            child.join(who)
        return child


class Tree:
    """The prefix tree. :meth:`add` may be called as answers come, :meth:`described` at any time."""

    def __init__(self) -> None:
        self._root = _Node(("", "", 0, "thread"), {})

    def add(
        self,
        members: Iterable[int],
        thread: Thread,
        state: str = "",
        variables: dict[int, list[dict[str, str]]] | None = None,
    ) -> None:
        """Members (by number) whose thread stands there. ``variables``: by member, of the innermost own frame."""
        who = dict.fromkeys(members)
        node = self._root
        node.join(who)
        if thread.name:
            node = node.below((thread.name, "", 0, "thread"), who)
        own = thread.innermost_own
        end = node
        for at, frame in enumerate(thread.frames):
            node = node.below(frame, who)
            if at == own:
                end = node
        end = node if own is None else end
        end.ends = (end.ends or set()) | {(state or ("blocked" if thread.call else "running"), thread.call)}
        if variables:
            end.variables = (end.variables or {}) | variables

    def described(
        self, ids: Sequence[str], write: Callable[[list[int]], str], apart: AbstractSet[int] = frozenset()
    ) -> dict[str, Any]:
        """The root as the editor is told: among siblings the one with the fewest members first.

        ``ids`` are the members' ids by number, ``write`` writes a rank set. Who is ``apart`` (a driver) is no outlier.
        """
        return _Writer(ids, write, apart).node(self._root)


class _Writer:
    """Writes nodes. One with the same members as its parent has the same list and text."""

    def __init__(self, ids: Sequence[str], write: Callable[[list[int]], str], apart: AbstractSet[int]) -> None:
        self._ids = ids
        self._write = write
        self._apart = apart
        self._texts: dict[tuple[int, ...], tuple[list[str], str]] = {}

    def node(self, root: _Node) -> dict[str, Any]:
        """A node and all below it. Not by recursion: stacks are deeper than Python's own may be."""
        top = self._one(root, None)
        todo = [(root, top)]
        while todo:
            node, told = todo.pop()
            for child in (
                sorted(node.children.values(), key=self._order) if len(node.children) > 1 else node.children.values()
            ):
                one = self._one(child, told)
                told["children"].append(one)
                todo.append((child, one))
        return top

    def _one(self, node: _Node, above: dict[str, Any] | None) -> dict[str, Any]:
        name, path, line, kind = node.frame
        if above is not None and len(above["members"]) == len(node.members):
            members, ranks = above["members"], above["ranks"]
        else:
            members, ranks = self._set(node.members)
        told: dict[str, Any] = {
            "name": name,
            "path": path,
            "line": line,
            "kind": kind,
            "members": members,
            "ranks": ranks,
        }
        if node.ends:
            told["state"] = min((state for state, _ in node.ends), key=_STATES.index)
            calls = sorted({call for _, call in node.ends if call})
            if calls:
                told["call"] = ", ".join(calls)
        if node.variables:
            told["locals"] = {self._ids[number]: found for number, found in node.variables.items()}
        told["children"] = []
        return told

    def _set(self, numbers: dict[int, None]) -> tuple[list[str], str]:
        key = tuple(sorted(numbers))
        if key not in self._texts:
            self._texts[key] = [self._ids[number] for number in key], self._write(list(key))
        return self._texts[key]

    def _order(self, node: _Node) -> tuple[bool, bool, int, str, int, str]:
        """Outliers first; threads other than the main one last."""
        name, path, line, kind = node.frame
        return kind == "thread", node.members.keys() <= self._apart, len(node.members), path, line, name
