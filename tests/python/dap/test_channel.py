"""Framing and channel: both ends, and what bad bytes do."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any

import pytest

from rankscope.dap.channel import Channel, method_name
from rankscope.dap.framing import MAX_BODY, FramingError, Parser, encode
from rankscope.dap.ids import IdMap
from rankscope.dap.messages import DapError
from rankscope.errors import UserError


def test_messages_survive_any_cut() -> None:
    messages = [{"seq": 1, "text": "größer"}, {"seq": 2, "text": ""}]
    data = b"".join(map(encode, messages))
    for step in (1, 3, 7, len(data)):
        parser = Parser()
        found = [message for at in range(0, len(data), step) for message in parser.feed(data[at : at + step])]
        assert found == messages


def test_lone_surrogates_do_not_break_the_connection() -> None:
    assert Parser().feed(encode({"text": "\ud800"})) != []


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "no Content-Length"),
        (b"Content-Length: many\r\n\r\n", "is no number"),
        (b"Content-Length: %d\r\n\r\n" % (MAX_BODY + 1), "more than the"),
        (b"Content-Length: 3\r\n\r\n{x}", "no JSON"),
        (b"Content-Length: 2\r\n\r\n[]", "no JSON object"),
        (b"x" * 9000, "no end of the header"),
    ],
)
def test_bad_bytes_are_named(data: Any, says: Any) -> None:
    with pytest.raises(FramingError, match=says):
        Parser().feed(data)


def test_method_names() -> None:
    assert method_name("setBreakpoints") == "do_set_breakpoints"
    assert method_name("rankscope/driverExited") == "do_rankscope_driver_exited"


class Server:
    """Answers in every way a handler can."""

    def __init__(self) -> None:
        self.was_cancelled = asyncio.Event()

    async def do_echo(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments

    async def do_for_person(self, _: dict[str, Any]) -> None:
        raise UserError("some-code", "It is broken.", "Mend it.")

    async def do_bug(self, _: dict[str, Any]) -> None:
        raise RuntimeError("oops")

    async def do_for_ever(self, _: dict[str, Any]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.was_cancelled.set()


class Pair:
    """A client and a server channel over a socket pair."""

    async def __aenter__(self) -> Pair:  # noqa: PYI034 - Self came with 3.11
        ours, theirs = socket.socketpair()
        self.client = Channel(*await asyncio.open_connection(sock=ours))
        self.peer = Channel(*await asyncio.open_connection(sock=theirs))
        self.server = Server()
        self.tasks = [
            asyncio.ensure_future(self.client.serve(self)),
            asyncio.ensure_future(self.peer.serve(self.server)),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        await self.peer.close()
        await asyncio.wait_for(asyncio.gather(*self.tasks), 5)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 20))


def test_answers_and_failures() -> None:
    async def work() -> None:
        async with Pair() as pair:
            assert await pair.client.request("echo", {"a": 1}) == {"a": 1}
            with pytest.raises(DapError, match=r"It is broken. Mend it.") as caught:
                await pair.client.request("forPerson")
            assert caught.value.code == "some-code"
            with pytest.raises(DapError, match="failed inside RankScope"):
                await pair.client.request("bug")
            with pytest.raises(DapError, match="'nothing' is not supported"):
                await pair.client.request("nothing")
            assert await pair.client.request("echo", {"still": "there"}) == {"still": "there"}

    run(work())


def test_a_late_answer_is_a_time_out_and_cancel_ends_the_work() -> None:
    async def work() -> None:
        async with Pair() as pair:
            with pytest.raises(TimeoutError, match=r"'forEver' was not answered within 0\.05 s"):
                await pair.client.request("forEver", timeout=0.05)
            await pair.client.request("cancel", {"requestId": 1})
            await pair.server.was_cancelled.wait()

    run(work())


def test_a_closed_connection_fails_what_is_pending() -> None:
    async def work() -> None:
        async with Pair() as pair:
            pending = asyncio.ensure_future(pair.client.request("forEver"))
            await pair.client.request("echo")
            await pair.peer.close()
            with pytest.raises(DapError, match="the connection was closed"):
                await pending
            with pytest.raises(DapError, match="cannot be sent"):
                await pair.client.request("echo")

    run(work())


def test_ids_tell_a_stale_one_from_an_unknown_one() -> None:
    ids: IdMap[int] = IdMap("frame")
    one, other = ids.give("a", 5), ids.give("b", 5)
    assert one != other
    assert ids.give("a", 5) == one
    assert ids.find(other) == ("b", 5)
    ids.drop("a")
    with pytest.raises(DapError, match="This frame is gone: its rank has run on since"):
        ids.find(one)
    with pytest.raises(DapError, match="There is no frame 99 in this session"):
        ids.find(99)
    assert ids.give("a", 5) not in (one, other)
