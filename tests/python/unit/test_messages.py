"""Messages survive the wire, and what a newer or a hostile peer sends is met calmly."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import msgpack
import pytest

from rankscope.wire import messages
from rankscope.wire.messages import Dap, End, Hello, Message, decode, encode

KINDS = [kind for kind in vars(messages).values() if isinstance(kind, type) and issubclass(kind, Message)]
KINDS.remove(Message)

SAMPLES: dict[type, object] = {str: "x", int: 7, float: 2.5, bool: True, bytes: b"\x00", list: ["a"], dict: {"k": 1}}


def filled(kind: type[Message]) -> Message:
    """A message whose every field differs from its default."""
    blank = kind()
    values = {f.name: SAMPLES.get(type(getattr(blank, f.name)), 7) for f in fields(kind)}
    return kind(**values)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_message_survives_the_wire(kind: type[Message]) -> None:
    message = filled(kind)
    raw = msgpack.unpackb(msgpack.packb(encode(message)))
    assert decode(raw) == message


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_field_has_a_default(kind: type[Message]) -> None:
    assert decode({"t": kind.__name__}) == kind()


def test_an_unknown_field_is_ignored() -> None:
    assert decode({"t": "Dap", "data": b"{}", "colour": "red"}) == Dap(b"{}")


@pytest.mark.parametrize("raw", [{"t": "Launch"}, {}, {"t": ""}, {"t": "Message"}, {"t": 7}])
def test_an_unknown_message_is_no_message(raw: dict[str, Any]) -> None:
    assert decode(raw) is None


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({"t": "Hello", "pid": "1"}, "Hello.pid is a str"),
        ({"t": "Hello", "facts": []}, "Hello.facts is a list"),
        ({"t": "Dap", "data": "{}"}, "Dap.data is a str"),
        ({"t": "Welcome", "files": None}, "Welcome.files is a NoneType"),
    ],
)
def test_a_wrong_shape_is_refused(raw: dict[str, Any], why: str) -> None:
    with pytest.raises(TypeError, match=why):
        decode(raw)


def test_a_whole_number_serves_as_seconds() -> None:
    end = decode({"t": "End", "grace": 3})
    assert isinstance(end, End)
    assert end.grace == 3


def test_defaults_are_not_shared() -> None:
    first, second = Hello(), Hello()
    first.facts["rank"] = 1
    first.roots.append("/a")
    assert second == Hello()
