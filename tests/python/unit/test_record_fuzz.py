"""Records of any content: opening them and looking into them ends well, and what is sound is found."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import tempfile
from pathlib import Path
from typing import Any

import pytest

from rankscope import journal
from rankscope.dap.messages import DapError
from rankscope.hub.kept_member import KeptMember
from rankscope.postmortem import kept_run, report, text

hypothesis = pytest.importorskip("hypothesis")
st: Any = pytest.importorskip("hypothesis.strategies")
pytestmark = pytest.mark.core

HAS_JINJA = importlib.util.find_spec("jinja2") is not None
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=9)
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
NAMES = st.sampled_from(
    [
        "about",
        "dump",
        "threads",
        "frames",
        "nodes",
        "kids",
        "locals",
        "exception",
        "cause",
        "sources",
        "line",
        "isFirst",
    ]
) | st.sampled_from(
    ["episode", "failed", "number", "at", "text", "label", "path", "facts", "more", "rankscope", "kind", "name", "env"]
)
LIKELY = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=6))


@hypothesis.given(st.lists(st.dictionaries(NAMES, LIKELY | VALUES, max_size=6), max_size=4), st.data())
@hypothesis.settings(max_examples=100, deadline=None)
def test_whatever_a_record_holds(entries: list[dict[str, Any]], data: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / kept_run.DUMPS).mkdir()
        for file, kind in ((folder / kept_run.FINDINGS, "findings"), (folder / kept_run.DUMPS / "1.msgpack", "dump")):
            frames = [journal.pack({"rankscope": 1, "kind": kind})] + [
                packed for one in entries if (packed := _pack(one))
            ]
            raw = bytearray(b"".join(frames))
            for at in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=3)):
                raw[at] ^= 0xFF
            file.write_bytes(raw)
        run = kept_run.open_run(folder)
        for kept in run.kept:
            asyncio.run(_look(KeptMember(0, kept.about, kept.load)))
        list(text.post_mortem(run))
        if HAS_JINJA:
            report.render(folder, run)


def _pack(entry: dict[str, Any]) -> bytes:
    with contextlib.suppress(OverflowError, ValueError):
        return journal.pack(entry)
    return b""


async def _look(member: KeptMember) -> None:
    for command in ("threads", "stackTrace", "exceptionInfo", "completions"):
        with contextlib.suppress(DapError):
            body = await member.debug(command, {"threadId": 1, "frameId": 0})
            for frame in body.get("stackFrames", ()):
                for scope in (await member.debug("scopes", {"frameId": frame["id"]}))["scopes"]:
                    await member.debug("variables", scope)
