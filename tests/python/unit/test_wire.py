"""Frames, the proof of the secret, and the order of messages that outlives a break."""

from __future__ import annotations

import struct

import pytest

from rankscope.wire import frames
from rankscope.wire.auth import AgentSide, HubSide, Refused
from rankscope.wire.link import Endpoint, LinkBroken, Sequencer

pytestmark = pytest.mark.core
SECRET = b"s" * 32


def test_frames_arrive_whole_however_the_bytes_are_cut() -> None:
    sent: list[dict[str, object]] = [{"a": 1}, {"b": b"\x00\xff"}, {"c": "ü"}]
    stream = b"".join(frames.pack(raw) for raw in sent)
    for size in (1, 2, 3, 7, len(stream)):
        parser = frames.FrameParser()
        got = []
        for at in range(0, len(stream), size):
            parser.feed(stream[at : at + size])
            while (raw := parser.next()) is not None:
                got.append(raw)
        assert got == sent


def test_a_frame_too_long_is_refused_from_its_head_alone() -> None:
    parser = frames.FrameParser(limit=100)
    parser.feed(struct.pack(">I", 101))
    with pytest.raises(frames.FrameError, match="101 bytes"):
        parser.next()


@pytest.mark.parametrize("body", [b"\xc1", b"\x01", b"\x93\x01", b""])
def test_what_is_no_map_is_refused(body: bytes) -> None:
    parser = frames.FrameParser()
    parser.feed(struct.pack(">I", len(body)) + body)
    with pytest.raises(frames.FrameError):
        parser.next()


def test_both_sides_prove_the_secret_without_sending_it() -> None:
    agent, hub = AgentSide(SECRET, "job"), HubSide(SECRET, "job")
    opening = agent.open()
    challenge = hub.challenge(opening)
    proof = agent.answer(challenge)
    hub.check(proof)
    crossed = repr([opening, challenge, proof])
    assert SECRET.decode() not in crossed
    assert SECRET.hex() not in crossed


def test_a_wrong_secret_is_refused_by_each_side() -> None:
    agent = AgentSide(SECRET, "job")
    challenge = HubSide(b"other", "job").challenge(agent.open())
    with pytest.raises(Refused, match="hub does not know"):
        agent.answer(challenge)
    hub = HubSide(SECRET, "job")
    hub.challenge(AgentSide(SECRET, "job").open())
    with pytest.raises(Refused, match="does not know this job's secret"):
        hub.check({"proof": b"x" * 32})


def test_a_proof_cannot_be_sent_back_to_its_maker() -> None:
    hub = HubSide(SECRET, "job")
    challenge = hub.challenge(AgentSide(SECRET, "job").open())
    with pytest.raises(Refused):
        hub.check({"proof": challenge["proof"]})


@pytest.mark.parametrize(
    "opening",
    [
        {},
        {"version": 99, "job": "job", "nonce": b"n" * 32},
        {"version": 1, "job": "another", "nonce": b"n" * 32},
        {"version": 1, "job": "job", "nonce": "text"},
        {"version": 1, "job": "job", "nonce": b"short"},
    ],
)
def test_an_opening_that_does_not_fit_is_refused_with_a_reason(opening: dict[str, object]) -> None:
    with pytest.raises(Refused) as caught:
        HubSide(SECRET, "job").challenge(opening)
    assert caught.value.reason


def test_a_reconnect_loses_and_repeats_nothing() -> None:
    sender, receiver = Sequencer(), Sequencer()
    lost = [sender.wrap({"i": i}) for i in range(10)]
    got = [receiver.unwrap(frame) for frame in lost[:4]]
    again = sender.resume(receiver.received)
    got += [receiver.unwrap(frame) for frame in again]
    assert [message["i"] for message in got if message] == list(range(10))
    assert [receiver.unwrap(frame) for frame in again] == [None] * len(again)
    sender.unwrap(receiver.heartbeat())
    assert sender.resume(receiver.received) == []


def test_a_gap_breaks_the_link() -> None:
    sender, receiver = Sequencer(), Sequencer()
    sender.wrap({})
    with pytest.raises(LinkBroken):
        receiver.unwrap(sender.wrap({}))
    with pytest.raises(LinkBroken):
        sender.resume(3)


def test_the_job_file_is_its_owners_alone(tmp_path) -> None:  # type: ignore[no-untyped-def]
    endpoint = Endpoint(job="j", host="127.0.0.1", port=1, secret="00ff")
    path = tmp_path / "job.json"
    endpoint.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert Endpoint.parse(path.read_text()) == endpoint
    with pytest.raises(ValueError, match="job file"):
        Endpoint.parse("[]")
