"""``sys.exit`` under our eye: it raises as Python's own does, and what it says is remembered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rankscope.agent import ending, exits
from rankscope.escapes import without_escapes

pytestmark = pytest.mark.core
PACKAGE = Path(__file__).parents[3] / "python_adapter"

PROGRAM = """
import inspect, pickle, sys, threading, traceback
from rankscope.agent import exits
real = sys.exit
exits.install(lambda error, how: ({"text": repr(error)}, {}), lambda: True)
def leave(*args):
    sys.exit(*args)
def caught(*args):
    try:
        leave(*args)
    except SystemExit as e:
        return e
for args in ((), (None,), (0,), (3,), ("text",), ((1, 2),)):
    own = caught(*args)
    try:
        real(*args)
    except SystemExit as plain:
        assert (own.code, own.args) == (plain.code, plain.args), args
    assert [frame.name for frame in traceback.extract_tb(own.__traceback__)] == ["caught", "leave"]
    last = exits.last()
    assert (last is not None) == bool(args and args[0]), (args, last)
for wrong in ((1, 2),):
    try:
        sys.exit(*wrong)
    except TypeError:
        pass
    else:
        raise AssertionError
caught(0)
thread = threading.Thread(target=caught, args=(5,))
thread.start()
thread.join()
assert exits.last() is None
try:
    raise KeyError("x")
except KeyError:
    caught(1)
assert exits.last()[0]["text"] == "KeyError('x')"
assert pickle.loads(pickle.dumps(sys.exit)) is sys.exit
caught(3)
about, dump = exits.last()
assert (about["text"], about["name"]) == ("exited with code 3", "leave"), about
print("RESULT", about["line"])
"""


def test_it_raises_as_pythons_own_does() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": str(PACKAGE), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (None, ""),
        (0, ""),
        (False, ""),
        (3, "exited with code 3"),
        (-1, "exited with code 255"),
        ("x", "exited with code 1"),
    ],
)
def test_a_code_in_words(code: object, text: str) -> None:
    assert exits.text_of(code) == text


def test_the_cause_of_an_exit_is_what_was_handled() -> None:
    left, cause = SystemExit(1), KeyError("x")
    assert exits.cause_of(left) is left
    left.__context__ = cause
    assert exits.cause_of(left) is cause
    left.__suppress_context__ = True
    assert exits.cause_of(left) is left


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("a\tb\nc\r\x00", "a\tb\nc"),
        ("é", "é"),
    ],
)
def test_escapes_are_taken_out(text: str, plain: str) -> None:
    assert without_escapes(text) == plain
    assert ending.described(ValueError(text)).startswith(f"ValueError: {plain}".partition("\n")[0])
