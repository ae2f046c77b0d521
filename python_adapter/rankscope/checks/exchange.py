"""Words between the ranks of a group that share nothing with the training: over its store, each wait with a bound.

Every rank posts, the first one decides, all read the decision. A rank that does not post is named to the others.
Tensors' pieces travel over a gloo group of our own (:meth:`Exchange.data_group`), which no collective of the program
knows of.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import msgpack

from rankscope.errors import UserError

_GRACE = 2.0
_CATCH_UP = 1.0
_SHORTEST, _LONGEST = 0.0002, 0.25
_numbers: dict[tuple[Any, ...], int] = {}  # of the last round in a group, which outlives the group's object
_stores: dict[tuple[Any, ...], tuple[Any, Any]] = {}  # a group's own, and ours


class Missing(UserError):
    """Ranks that have not called the check in time. ``ranks`` are global."""

    def __init__(self, ranks: Sequence[int], what: str, seconds: float, *, is_own: bool = False) -> None:
        names = ", ".join(map(str, ranks))
        who = f"Rank {names} has" if len(ranks) == 1 else f"Ranks {names} have"
        text = f"{who} not called {what} within {seconds:g} s."
        if is_own:
            text = f"The other ranks have given up waiting for this rank to call {what}."
        super().__init__("rank-missing", text, "Every rank of the group has to call it, in the same order.")
        self.ranks = list(ranks)


class Exchange:
    """Rounds among the ranks of one process group. ``rank`` is this process's in it, ``ranks`` the global ones.

    Raises :class:`UserError` ``no-group`` before ``init_process_group`` and where the group excludes this process.
    """

    def __init__(self, group: Any = None, timeout: float = 60.0) -> None:
        distributed: Any = sys.modules.get("torch.distributed")
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            hint = "Call torch.distributed.init_process_group first."
            raise UserError("no-group", "There is no process group to compare in.", hint)
        if group is not None and hasattr(group, "get_group"):
            group = group.get_group()  # a DeviceMesh of one dimension
        group = distributed.group.WORLD if group is None else group
        self.rank = -1 if isinstance(group, int) else distributed.get_rank(group)
        if self.rank < 0:
            raise UserError("no-group", "This rank is not in the group to compare in.", "Call it on the group's ranks.")
        module: Any = sys.modules["torch.distributed.distributed_c10d"]
        self.ranks: list[int] = list(distributed.get_process_group_ranks(group))
        self.timeout = timeout
        self._key: tuple[Any, ...] = (str(group.group_name), tuple(self.ranks))
        self._store: Any = _store_of(module._get_process_group_store(group), self._key)
        self._data: Any = None

    def among(self, ranks: Sequence[int]) -> Exchange:
        """An exchange of some of its (global) ranks only, this one included; to be made on each of them."""
        part = copy.copy(self)
        part.ranks = sorted(ranks)
        part.rank = part.ranks.index(self.ranks[self.rank])
        part._key = (*self._key, tuple(part.ranks))
        digest = hashlib.blake2b(repr(part.ranks).encode(), digest_size=8).hexdigest()
        part._store = sys.modules["torch.distributed"].PrefixStore(digest, self._store)
        part._data = None
        return part

    @property
    def size(self) -> int:
        """How many ranks take part."""
        return len(self.ranks)

    def round(self, post: Any, decide: Callable[[list[Any]], Any], what: str) -> Any:
        """What ``decide`` makes, on the group's first rank, of all ranks' posts, in order of rank.

        Posts and decisions are what msgpack can carry. Raises :class:`Missing`, on every rank that waits, and on all
        of them the :class:`UserError` that ``decide`` raises.
        """
        if self.size == 1:
            return decide([post])
        answer = self._one_round(post, decide, what)
        while self._was_given_up(answer) and self._are_others_ahead():
            answer = self._one_round(post, decide, what)
        if "error" in answer:
            raise UserError(*answer["error"])
        if "missing" in answer:
            raise Missing(answer["missing"], what, self.timeout, is_own=self._was_given_up(answer))
        return answer["decision"]

    def _one_round(self, post: Any, decide: Callable[[list[Any]], Any], what: str) -> dict[str, Any]:
        number = _numbers[self._key] = _numbers.get(self._key, 0) + 1
        try:
            self._store.set(f"{number}/{self.rank}", msgpack.packb(post))
            answer = self._decide(number, decide) if self.rank == 0 else self._await_decision(number, what)
            with contextlib.suppress(Exception):  # a store that keeps everything
                self._store.delete_key(f"{number}/{self.rank}")
        except RuntimeError as e:  # torch's DistError and its kin
            text = f"The store of the process group does not answer: {str(e).splitlines()[0]}."
            raise UserError("rank-missing", text, "Has the rank that holds it ended?") from e
        return answer

    def _was_given_up(self, answer: dict[str, Any]) -> bool:
        """Whether it was this rank that the others have waited for in vain."""
        return self.ranks[self.rank] in answer.get("missing", ())

    def _are_others_ahead(self) -> bool:
        """Whether the others are at the next round: then this rank has left one out, and comes along again."""
        key = f"{_numbers[self._key] + 1}/{0 if self.rank else 1}"
        return self._wait(key, time.monotonic() + min(self.timeout, _CATCH_UP))

    def _decide(self, number: int, decide: Callable[[list[Any]], Any]) -> dict[str, Any]:
        keys = [f"{number}/{rank}" for rank in range(self.size)]
        until = time.monotonic() + self.timeout
        missing = [self.ranks[rank] for rank, key in enumerate(keys) if not self._wait(key, until)]
        if self._store.check([f"{number}/over"]):
            return {"missing": [self.ranks[0]]}
        if missing:
            answer: dict[str, Any] = {"missing": missing}
        else:
            posts = [msgpack.unpackb(self._store.get(key), strict_map_key=False) for key in keys]
            try:
                answer = {"decision": decide(posts)}
            except UserError as e:
                answer = {"error": [e.code, e.message, e.hint]}
        self._store.set(f"{number}/decision", msgpack.packb(answer))
        if not missing:  # so all have read the last one
            with contextlib.suppress(Exception):  # a store that keeps everything
                self._store.delete_key(f"{number - 1}/decision")
        return answer

    def _await_decision(self, number: int, what: str) -> dict[str, Any]:
        key = f"{number}/decision"
        if not self._wait(key, time.monotonic() + self.timeout + _GRACE):
            self._store.set(f"{number}/over", b"")
            absent = [rank for at, rank in enumerate(self.ranks) if not self._store.check([f"{number}/{at}"])]
            raise Missing(absent or [self.ranks[0]], what, self.timeout)
        answer: dict[str, Any] = msgpack.unpackb(self._store.get(key), strict_map_key=False)
        return answer

    def _wait(self, key: str, until: float) -> bool:
        """Whether a key has come; looks more seldom the longer it takes. Nobody is late who may be paused."""
        began = time.monotonic()
        while not self._store.check([key]):
            now = time.monotonic()
            if now > until and not _may_be_paused():
                return False
            time.sleep(min(_LONGEST, max(_SHORTEST, (now - began) / 10)))
        return True

    # --- tensors ------------------------------------------------------------------------------------------------

    def send(self, tensor: Any, to: int) -> None:
        """A plain CPU tensor, to a rank of the group that receives it. Raises ``RuntimeError``."""
        self._data_group().send([tensor], to, 0).wait(timedelta(seconds=self.timeout))

    def receive(self, tensor: Any, source: int) -> Any:
        """Fill a tensor with what a rank of the group sends."""
        self._data_group().recv([tensor], source, 0).wait(timedelta(seconds=self.timeout))
        return tensor

    def _data_group(self) -> Any:
        """Made by all ranks when they go to compare values: its making is a meeting."""
        if self._data is None:
            distributed: Any = sys.modules["torch.distributed"]
            store = distributed.PrefixStore(f"data/{_numbers[self._key]}", self._store)
            self._data = distributed.ProcessGroupGloo(store, self.rank, self.size, timedelta(seconds=self.timeout))
        return self._data

    def open_data(self) -> None:
        """To be called by all ranks at once before they send or receive."""
        self._data_group()

    def close_data(self) -> None:
        """Close its connections; the next one is a new one."""
        self._data = None


def _store_of(store: Any, key: tuple[Any, ...]) -> Any:
    """A group's store by a connection of our own, so that a wait of ours holds nobody else's up."""
    theirs, ours = _stores.get(key, (None, None))
    if theirs is not store:
        ours = store
        with contextlib.suppress(Exception):  # one that has no other connection
            ours = store.clone()
        ours = sys.modules["torch.distributed"].PrefixStore("rankscope", ours)
        _stores[key] = (store, ours)
    return ours


def _may_be_paused() -> bool:
    """Whether a rank may be late because it is paused in the debugger."""
    collectives = sys.modules.get("rankscope.agent.collectives")
    return collectives is not None and bool(collectives.may_be_paused())
