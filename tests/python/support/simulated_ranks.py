"""Many ranks in one process: the real agents' wire, and nothing else of a rank.

As a program, ``simulated_ranks.py COUNT [distinct]`` is a job of so many ranks, eight to a (made-up) host. It prints
``joined SECONDS`` once the hub has welcomed all of them, and ends when its stdin does or it is terminated.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import msgpack

from rankscope.ranks import RankFacts
from rankscope.wire import frames
from rankscope.wire import messages as m
from rankscope.wire.auth import AgentSide
from rankscope.wire.link import HEARTBEAT_SECONDS, Endpoint, Sequencer

Answer = dict[str, Any]
RANKS_PER_HOST = 8
DEPTH = 40


def stacks_of(rank: int, world_size: int, *, is_distinct: bool = False) -> Answer:
    """40 frames in all_reduce, a helper thread beside it. A few places of the loop, three outliers; or all differ."""
    paths = ["/work/train.py", "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py"]
    paths.append("/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py")
    paths.append("/usr/lib/python3.11/threading.py")
    codes: list[list[Any]] = [["<module>", 0, True], ["main", 0, True], ["train_step", 0, True]]
    codes += [[f"Module{at}._call_impl", 1, False] for at in range(DEPTH - 5)]
    codes += [["all_reduce", 2, False], ["_wait", 2, False], ["Thread._bootstrap", 3, False], ["serve", 0, True]]
    line = rank if is_distinct else 3000 + rank if rank in (1, world_size // 2, world_size - 1) else rank % 32
    main = [0, 80, 1, 70, 2, 40 + line]
    for at in range(3, DEPTH):
        main += [at, 1000 + at]
    helper = [DEPTH, 1002, DEPTH + 1, 12]
    threads = [["", "all_reduce", main], [f"Thread-{rank % 5} (serve)", "", helper]]
    return {"packed": msgpack.packb([paths, codes, threads, 0])}


def top_of(rank: int) -> Answer:
    """Where it is, as ``top`` is answered."""
    return {"frame": {"name": "train_step", "path": "/work/train.py", "line": 40 + rank % 32, "call": "all_reduce"}}


class SimulatedRank(asyncio.Protocol):
    """One rank's link. ``answers`` by question: a body, or what makes one of the arguments; ``None`` is silence."""

    def __init__(self, endpoint: Endpoint, facts: RankFacts, host: str = "") -> None:
        self.answers: dict[str, Answer | Callable[[dict[str, Any]], Answer] | None] = {
            "top": top_of(facts.rank or 0),
            "stacks": stacks_of(facts.rank or 0, facts.world_size or 1),
            "timeouts": {},
            "paths": {"found": {}},
        }
        self.asked: list[str] = []
        self.welcomed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._side = AgentSide(bytes.fromhex(endpoint.secret), endpoint.job)
        self._hello = m.Hello(
            member=os.urandom(8).hex(),
            job=endpoint.job,
            pid=os.getpid(),
            host=host or f"node-{(facts.rank or 0) // RANKS_PER_HOST}",
            python="3.11.7",
            name="train.py",
            facts=asdict(facts),
            cwd="/work",
            roots=["/work"],
        )
        self._order = Sequencer()
        self._parser = frames.FrameParser(frames.MAX_FRAME)
        self._step: Callable[[dict[str, Any]], None] = self._proved
        self._spoke_at = 0.0
        self._transport: asyncio.Transport

    @classmethod
    async def connect(cls, endpoint: Endpoint, facts: RankFacts, host: str = "") -> SimulatedRank:
        """A rank that the hub has welcomed."""
        loop = asyncio.get_running_loop()
        _, rank = await loop.create_connection(lambda: cls(endpoint, facts, host), endpoint.host, endpoint.port)
        await rank.welcomed
        return rank

    def close(self) -> None:
        self._transport.close()

    def heartbeat(self) -> None:
        """As an agent does after a silence."""
        if time.monotonic() - self._spoke_at >= HEARTBEAT_SECONDS:
            self._write(self._order.heartbeat())

    # --- asyncio's ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._write(self._side.open())

    def data_received(self, data: bytes) -> None:
        self._parser.feed(data)
        while (raw := self._parser.next()) is not None:
            assert "refused" not in raw, raw
            self._step(raw)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.welcomed.done():
            self.welcomed.set_exception(exc or ConnectionResetError("the hub closed the link"))

    # --- the wire -------------------------------------------------------------------------------

    def _proved(self, raw: dict[str, Any]) -> None:
        self._write(self._side.answer(raw))
        self._step = self._taken

    def _taken(self, _raw: dict[str, Any]) -> None:
        self._write({"hello": m.encode(self._hello), "seen": 0, "resumes": False})
        self._step = self._resumed

    def _resumed(self, _raw: dict[str, Any]) -> None:
        self._step = self._heard

    def _heard(self, raw: dict[str, Any]) -> None:
        message = self._order.unwrap(raw)
        if message is None:
            pass
        elif message["t"] == "Welcome":
            self.welcomed.set_result(None)
        elif message["t"] == "Ask":
            self.asked.append(message["what"])
            answer = self.answers.get(message["what"])
            if answer is not None:
                body = answer if isinstance(answer, dict) else answer(message["arguments"])
                self._write(self._order.wrap(m.encode(m.Reply(ask=message["ask"], body=body))))
        if self._order.owes_ack:
            self._write(self._order.heartbeat())

    def _write(self, raw: dict[str, Any]) -> None:
        self._spoke_at = time.monotonic()
        self._transport.write(frames.pack(raw))


async def connect_world(endpoint: Endpoint, count: int, group: str = "world") -> list[SimulatedRank]:
    """A whole world, at once."""
    ranks = (
        RankFacts(group=group, rank=rank, world_size=count, local_rank=rank % RANKS_PER_HOST, is_final=True)
        for rank in range(count)
    )
    return list(await asyncio.gather(*(SimulatedRank.connect(endpoint, facts) for facts in ranks)))


async def _main(count: int, *, is_distinct: bool) -> None:
    endpoint = Endpoint.load()
    assert endpoint is not None, "not started by a hub"
    started = time.monotonic()
    ranks = await connect_world(endpoint, count)
    print(f"joined {time.monotonic() - started:.4f}", flush=True)
    for number, rank in enumerate(ranks):
        rank.answers["stacks"] = stacks_of(number, count, is_distinct=is_distinct)
    while True:
        await asyncio.sleep(HEARTBEAT_SECONDS / 4)
        for rank in ranks:
            rank.heartbeat()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), is_distinct="distinct" in sys.argv))
