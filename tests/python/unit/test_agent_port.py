"""The agent port against strangers and liars, and a link that breaks and comes back."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from rankscope.wire import frames, streams
from rankscope.wire.auth import AgentSide
from rankscope.wire.messages import Hello, encode
from support.small_hub import SmallHub

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

EVALUATED = 10  # debugpy evaluates a few a second

LOOP = """\
import threading
total = 0
while True:
    total += 1
    threading.Event().wait(0.01)  # @bp
    if total == 3:
        break
print("RESULT", total)
"""


async def connected(hub: SmallHub) -> Streams:
    return await asyncio.open_connection("127.0.0.1", hub.endpoint.port)


async def prove(hub: SmallHub, secret: bytes) -> tuple[Streams, dict[str, object]]:
    reader, writer = await connected(hub)
    side = AgentSide(secret, hub.endpoint.job)
    writer.write(frames.pack(side.open()))
    challenge = await streams.read(reader)
    answer = side.answer(challenge) if secret.hex() == hub.endpoint.secret else {"proof": b"x" * 32}
    writer.write(frames.pack(answer))
    return (reader, writer), await streams.read(reader)


async def join(hub: SmallHub, member: str, **hello: object) -> Streams:
    link, answer = await prove(hub, bytes.fromhex(hub.endpoint.secret))
    assert answer == {"ok": True}
    reader, writer = link
    writer.write(frames.pack({"hello": {**encode(Hello(member=member, host="elsewhere")), **hello}, "seen": 0}))
    assert await streams.read(reader) == {"seen": 0}
    return link


def is_refused(hub: SmallHub, times: int) -> bool:
    return hub.port.refused == times


def with_hub(folder: Path, work: Callable[[SmallHub], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        async with SmallHub(folder, **settings) as hub:
            await work(hub)

    asyncio.run(run())


def test_a_wrong_secret_is_refused_counted_and_told(tmp_path: Path) -> None:
    async def work(hub: SmallHub) -> None:
        for attempt in (1, 2):
            _, answer = await prove(hub, b"y" * 32)
            assert "secret" in str(answer["refused"])
            await hub.until(functools.partial(is_refused, hub, attempt), "a refusal")
        assert not hub.fleet.members
        assert all("refused" in text for text in hub.heard)
        assert hub.endpoint.secret not in json.dumps(hub.heard)

    with_hub(tmp_path, work)


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        struct.pack(">I", 1 << 30),
        frames.pack({"version": 99, "job": "x", "nonce": b"n" * 32}),
        frames.pack({"hello": 1}),
        struct.pack(">I", 3) + b"\xc1\xc1\xc1",
    ],
)
def test_what_is_no_agent_is_sent_away(tmp_path: Path, garbage: bytes) -> None:
    async def work(hub: SmallHub) -> None:
        reader, writer = await connected(hub)
        writer.write(garbage)
        await hub.until(lambda: hub.port.refused == 1, "a refusal")
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            assert "refused" in await streams.read(reader)
        assert not hub.fleet.members

    with_hub(tmp_path, work)


def test_a_member_that_lies_harms_only_itself(tmp_path: Path) -> None:
    async def work(hub: SmallHub) -> None:
        honest_reader, honest = await join(hub, "honest")
        _, gap = await join(hub, "gap")
        gap.write(frames.pack({"n": 7, "a": 0, "m": {"t": "Notice"}}))
        _, wrong = await join(hub, "wrong")
        wrong.write(frames.pack({"n": 1, "a": 0, "m": {"t": "Notice", "text": 5}}))
        await hub.until(lambda: sum("cannot be read" in text for text in hub.heard) == 2, "both links closed")
        _, unknown = await join(hub, "unknown")
        unknown.write(frames.pack({"n": 1, "a": 0, "m": {"t": "Nonsense"}}))
        await hub.until(lambda: any("unknown message 'Nonsense'" in text for text in hub.heard), "the refusal")
        honest.write(frames.pack({"n": 1, "a": 0, "m": {"t": "Notice", "text": "still here"}}))
        await hub.until(lambda: "still here" in hub.heard, "the honest member")
        assert (await streams.read(honest_reader))["m"]["t"] == "Welcome"

    with_hub(tmp_path, work)


def test_a_silent_member_of_another_host_is_lost_after_the_bound(tmp_path: Path) -> None:
    async def work(hub: SmallHub) -> None:
        _, writer = await join(hub, "m")
        writer.close()
        await hub.until(lambda: hub.fleet.members["m"].state == "lost", "it is lost")

    with_hub(tmp_path, work, release_after=0.5)


def test_a_thousand_agents_at_once_all_join(tmp_path: Path) -> None:
    async def work(hub: SmallHub) -> None:
        links = await asyncio.gather(*(join(hub, str(number)) for number in range(400)))
        assert len(hub.fleet.members) == len(links)
        assert not hub.port.refused

    with_hub(tmp_path, work)


class Cutter:
    """A relay between agent and hub whose connections can be cut."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._writers: set[asyncio.StreamWriter] = set()

    async def serve(self) -> asyncio.Server:
        return await asyncio.start_server(self._pass, "127.0.0.1", 0)

    def cut(self) -> int:
        """Drop every connection, bytes under way included; how many there were."""
        writers, self._writers = self._writers, set()
        for writer in writers:
            writer.transport.abort()
        return len(writers)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers |= {writer, up_writer}

        async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                while data := await source.read(1024):
                    target.write(data)
            target.close()

        await asyncio.gather(pump(reader, up_writer), pump(up_reader, writer))


def test_a_link_cut_while_paused_loses_and_repeats_nothing(tmp_path: Path) -> None:
    program = tmp_path / "loop.py"
    program.write_text(LOOP)
    line = LOOP.splitlines().index(next(text for text in LOOP.splitlines() if text.endswith("# @bp"))) + 1

    async def run() -> None:
        async with SmallHub(tmp_path, program, line) as hub:
            cutter = Cutter(hub.endpoint.port)
            server = await cutter.serve()
            async with server:
                process = await hub.start(str(program), port=server.sockets[0].getsockname()[1])
                cuts = 0
                for expected in (1, 2, 3):
                    await hub.until(lambda n=expected: len(hub.stops) == n, f"stop {expected}")  # type: ignore[misc]
                    member = hub.stops[-1]
                    thread = next(iter(member.stopped))
                    frame = (await member.debug("stackTrace", {"threadId": thread}))["stackFrames"][0]["id"]
                    asked = [
                        asyncio.ensure_future(
                            member.debug("evaluate", {"expression": f"total * 1000 + {number}", "frameId": frame})
                        )
                        for number in range(EVALUATED)
                    ]
                    listed = [asyncio.ensure_future(member.debug("threads")) for _ in range(100)]
                    for cut_after in (listed[50], asked[2], asked[6]):
                        await cut_after
                        cuts += cutter.cut() > 0
                    answers = [(await answer)["result"] for answer in asked]
                    assert answers == [str(expected * 1000 + number) for number in range(EVALUATED)]
                    assert all([(await threads)["threads"] for threads in listed])
                    await member.debug("continue", {"threadId": thread})
                assert cuts >= 3
                assert process.stdout is not None
                assert b"RESULT 3" in await asyncio.wait_for(process.stdout.read(), 30)
                assert len(hub.fleet.members) == 1

    asyncio.run(run())
