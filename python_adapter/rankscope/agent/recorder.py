"""What this process waits in, as its process groups tell: the agent's thread looks once a second while there are any.

Each look takes only the numbers of the last collective entered and ended (under 0.1 ms); torch's whole flight recorder
is read when a group has not got on between two looks. What torch does not record, :mod:`collective_calls` counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rankscope.agent import imports
from rankscope.agent.collective_calls import Call, Calls
from rankscope.ranks import RankFacts, write_set
from rankscope.wire.messages import Waits

EVERY_SECONDS = 1.0
_BUFFER = "TORCH_FR_BUFFER_SIZE"
_OLD_BUFFER = "TORCH_NCCL_TRACE_BUFFER_SIZE"
_ENTRIES = "2000"
_DUMPS = ("_dump_fr_trace_json", "_dump_nccl_trace_json")
_RECENT = 32
_QUIET, _AGAIN = 2, 5  # looks
_DTYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Bool": "bool",
}

Wait = dict[str, Any]
_Number = tuple[int, str]  # of a recorder, and a group's number in it
_Groups = dict[str, tuple[str, list[int]]]


class Recorder:
    """One process's view of its groups. Used by the agent's thread alone, but for :meth:`found`."""

    def __init__(self) -> None:
        self.calls = Calls()
        self._module: Any = None
        self._dumps: list[Callable[..., bytes]] = []
        self._next = 0.0
        self._ended: dict[_Number, int] = {}
        self._told: tuple[Any, ...] = ()
        self._peers: list[Wait] = []
        self._peers_count, self._looks_since = 0, 0

    def found(self, module: ModuleType) -> None:
        """torch.distributed has been loaded: switch its recorder on, and watch what it does not record."""
        native = sys.modules.get("torch._C._distributed_c10d")
        is_of_every_backend = hasattr(native, _DUMPS[0])
        name = _BUFFER if is_of_every_backend else _OLD_BUFFER
        is_on = os.environ.setdefault(name, _ENTRIES).strip() != "0"
        if is_on:
            self._dumps = [getattr(native, name) for name in _DUMPS if hasattr(native, name)]
        self.calls.wrap(module, collectives=not (is_on and is_of_every_backend))
        self._module = module

    def give_up(self) -> None:
        """Look no more."""
        self._module = None

    def leaves(self) -> None:
        """The process ends: the next look comes at once, and tells that nothing is waited in any more."""
        self._next = 0.0

    def forget(self) -> None:
        """In a forked child: no group is its own, no call is under way."""
        self.calls.forget()
        self._ended.clear()
        self._told, self._peers = (), []

    # --- looking ----------------------------------------------------------------------------------

    def look(self, send: Callable[[Waits], None], now: float) -> None:
        """Tell the hub which world this is; then when it begins to wait, waits in something else, waits no more."""
        if self._module is None or now < self._next:
            return
        self._next = now + EVERY_SECONDS * 0.9  # the agent's thread wakes once a second
        if not self._module.is_initialized():
            if self._told:
                send(Waits(*self._told[0]))
                self._told = ()
            return
        stuck = self._stuck()
        blocked = self.calls.blocked(now, sys._current_frames())
        self._look_at_peers()
        peers = tuple((wait["op"], wait["group"], wait["peer"], wait["seq"]) for wait in self._peers)
        key = (self._world(), tuple(stuck), tuple((call.kind, call.group, call.seq) for call in blocked), peers)
        if key == self._told:
            return
        waits = [self._of_call(call, now) for call in blocked] + self._peers
        if stuck:
            waits += self._of_recorder({number for number, _ in stuck})
        self._told = key
        send(Waits(*self._world(), waits))

    def _stuck(self) -> list[tuple[_Number, int]]:
        """Groups that have work to end and have ended none since the last look, and how much they have ended."""
        ended: dict[_Number, int] = {}
        for at, dump in enumerate(self._dumps):
            status = json.loads(dump(False, False)).get("pg_status") or {}
            for number, counts in status.items():
                done = int(counts["last_completed_collective"])
                if int(counts["last_enqueued_collective"]) > done:
                    ended[at, number] = done
        stuck = [(number, done) for number, done in ended.items() if self._ended.get(number) == done]
        self._ended = ended
        return stuck

    def _look_at_peers(self) -> None:
        """Sends and receives on a device are in the recorder alone: read it when there have been none for a while."""
        is_same = self.calls.device_peers == self._peers_count
        self._looks_since = self._looks_since + 1 if is_same else 0
        self._peers_count = self.calls.device_peers
        if not self._looks_since:
            self._peers = []
        elif self._peers_count and (self._looks_since == _QUIET or (self._peers and self._looks_since % _AGAIN == 0)):
            groups = self._groups()
            self._peers = [
                wait
                for entry in self._entries()
                if entry.get("is_p2p") and _is_pending(entry) and (wait := self._of_peer(entry, groups)) is not None
            ]

    # --- what is waited in ------------------------------------------------------------------------

    def _of_call(self, call: Call, now: float) -> Wait:
        return {
            **self._group(call.group, self._groups()),
            "op": call.op,
            "seq": call.seq,
            "sizes": call.sizes,
            "dtypes": call.dtypes,
            "peer": None if call.kind == "collective" else call.peer,
            "tag": call.tag,
            "age": now - call.began,
        }

    def _of_recorder(self, stuck: set[_Number]) -> list[Wait]:
        """Of each group that does not get on the collective that it has entered first of those that have not ended."""
        groups = self._groups()
        first: dict[str, dict[str, Any]] = {}
        for entry in self._entries():
            name = entry["process_group"][0]
            is_candidate = entry["number"] in stuck and name in groups and not entry.get("is_p2p")
            if is_candidate and _is_pending(entry) and _seq(entry) < _seq(first.get(name)):
                first[name] = entry
        return [
            {
                **self._group(name, groups),
                **_signature(entry),
                "seq": _seq(entry),
                "peer": None,
                "tag": 0,
                "age": _age(entry),
            }
            for name, entry in first.items()
        ]

    def _of_peer(self, entry: dict[str, Any], groups: _Groups) -> Wait | None:
        """A send ``nccl:send 0->1`` or a receive ``nccl:recv 0<-1``; the numbers are places in the group."""
        name = entry["process_group"][0]
        kind, _, places = str(entry["profiling_name"]).partition(":")[2].partition(" ")
        if name not in groups or kind not in ("send", "recv"):
            return None
        place = int(places.replace("<-", "->").partition("->")[2])
        peer = groups[name][1][place]
        seq = sum(count for (k, g, p, _), count in self.calls.counts.items() if (k, g, p) == (kind, name, peer))
        wait = {**self._group(name, groups), **_signature(entry), "op": kind}
        return {**wait, "seq": seq, "peer": peer, "tag": 0, "age": _age(entry)}

    def _entries(self) -> list[dict[str, Any]]:
        """Everything recorded, oldest first; ``number`` is the group's."""
        return [
            {**entry, "number": (at, str(entry["pg_id"]))}
            for at, dump in enumerate(self._dumps)
            for entry in json.loads(dump(True, False)).get("entries") or ()
        ]

    # --- groups -----------------------------------------------------------------------------------

    def _groups(self) -> _Groups:
        """Description and global ranks of every group that this process is in, by name."""
        world = self._module._world
        return {
            str(group.group_name): (str(group.group_desc), sorted(world.pg_group_ranks.get(group) or ()))
            for group in list(world.pg_map)
        }

    @staticmethod
    def _group(name: str, groups: _Groups) -> Wait:
        desc, ranks = groups.get(name, ("", []))
        return {"group": name, "desc": desc if desc != "undefined" else "", "ranks": spans(ranks)}

    def _world(self) -> tuple[str, int]:
        """What tells this world from others of the job, empty where nothing does; and this process's rank in it."""
        store = None
        with contextlib.suppress(Exception):  # no default group yet, or another torch
            store = self._module._get_default_store()
            while hasattr(store, "underlying_store"):
                store = store.underlying_store
        place = [str(getattr(store, name, "")) for name in ("host", "port", "path")]
        return ":".join(filter(None, place)), int(self._module.get_rank())

    def answer(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Serves the question ``collectives``: what each group has entered of late, what was sent and received.

        ``entered`` is the number of the last collective; ``recent`` are ``[seq, op, sizes, dtypes]`` of the last ones;
        ``counts`` are ``[kind, group, peer, tag, how often]``.
        """
        del arguments
        if self._module is None or not self._module.is_initialized():
            return {"world": "", "rank": -1, "groups": [], "counts": []}
        world, rank = self._world()
        groups = self._groups()
        recent: dict[str, list[list[Any]]] = {name: [] for name in groups}
        for entry in self._entries():
            name = entry["process_group"][0]
            if name in recent and not entry.get("is_p2p"):
                recent[name].append([_seq(entry), *_signature(entry).values()])
        counts = [[*key, count] for key, count in list(self.calls.counts.items())]
        entered = {group: count for kind, group, _, _, count in counts if kind == "collective"}
        told = [
            {
                **self._group(name, groups),
                "entered": max([entered.get(name, 0), *(each[0] for each in recent[name])]),
                "recent": recent[name][-_RECENT:],
            }
            for name in groups
        ]
        return {"world": world, "rank": rank, "groups": told, "counts": [c for c in counts if c[0] != "collective"]}


def spans(ranks: list[int]) -> str:
    """Ranks as a set: ``0-3,8``."""
    return write_set(RankFacts(rank=rank) for rank in ranks)


def _seq(entry: dict[str, Any] | None) -> float:
    return float("inf") if entry is None else int(entry["collective_seq_id"])


def _is_pending(entry: dict[str, Any]) -> bool:
    return not entry.get("retired") and entry.get("state") != "completed"


def _age(entry: dict[str, Any]) -> float:
    return max(0.0, time.time() - int(entry["time_created_ns"]) / 1e9)


def _signature(entry: dict[str, Any]) -> Wait:
    """What all ranks have to agree in: the operation, and sizes and types of what goes in (else of what comes out)."""
    side = "input" if entry.get("input_sizes") else "output"
    op = str(entry["profiling_name"]).partition(":")[2]
    dtypes = [_DTYPES.get(name, str(name).lower()) for name in entry.get(f"{side}_dtypes") or ()]
    return {"op": op, "sizes": entry.get(f"{side}_sizes") or [], "dtypes": dtypes}


_recorder = Recorder()


def install() -> None:
    """Follow torch's process groups as soon as they can exist."""
    imports.after_import("torch.distributed.distributed_c10d", _recorder.found)


def look() -> None:
    """On the agent's thread, as often as it wakes. A recorder that cannot be read is given up, and that is told."""
    agent = _agent()
    if agent is None:
        return
    try:
        _recorder.look(agent.send, time.monotonic())
    except RuntimeError:
        pass  # a group was made or destroyed meanwhile: the next look tells
    except Exception as e:
        _recorder.give_up()
        agent.notice("warning", f"torch's flight recorder cannot be read, hangs are not found here: {e!r}")


answer = _recorder.answer
leaves = _recorder.leaves
forget = _recorder.forget


def _agent() -> Any:
    return getattr(sys.modules.get("rankscope.agent.agent"), "current", None)
