"""``rankscope/stacks``: everybody's stacks as one tree, and who is missing in it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from dap.transcript import Transcript
from rankscope.dap.messages import DapError
from rankscope.hub import native_stacks
from support.dap_client import Session
from support.fake_ranks import FakeHub
from support.simulated_ranks import stacks_of

Node = dict[str, Any]


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 30))


async def ask(session: Session, **arguments: Any) -> dict[str, Any]:
    return dict(await session.request("rankscope/stacks", arguments))


def leaves(node: Node) -> list[Node]:
    return [node] if not node["children"] else [leaf for child in node["children"] for leaf in leaves(child)]


def test_a_tree_over_ranks_and_driver() -> None:
    async def work() -> None:
        transcript = Transcript()
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            driver = await hub.fleet.join_driver()
            driver.stacks = plain("get", "/venv/site-packages/ray/worker.py", "train", "/code/train.py")
            for rank in range(4):
                await hub.fleet.join_rank(rank)
            ranks = list(hub.fleet.members.values())[1:]
            for member in ranks[:3]:
                member.stacks = plain("all_reduce", "/venv/site-packages/torch/c10d.py", "step", "/code/train.py")
            ranks[3].stacks = plain("save", "/code/train.py", "step", "/code/train.py")
            await transcript.note("three ranks in all_reduce, one elsewhere, the driver waits")
            transcript.listen(root)
            answer = await ask(root)
            assert answer.pop("seconds") < 20
            transcript.say(root, f"== rankscope/stacks {json.dumps(answer)}")
            await transcript.check("stacks")

    run(work())


def plain(*names_and_paths: str) -> dict[str, Any]:
    pairs = zip(names_and_paths[::2], names_and_paths[1::2], strict=True)
    frames = [{"name": name, "path": path, "line": 10 + at} for at, (name, path) in enumerate(pairs)]
    return {"threads": [{"thread": "MainThread", "ident": 1, "is_main": True, "frames": frames}]}


def test_who_is_asked() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single", rankSets={"first": "actor/0"})
            await hub.fleet.join_driver()
            await hub.fleet.join_rank(0)
            await hub.fleet.join_rank(1)
            await hub.fleet.join_rank(0, group="critic")
            child = await hub.fleet.join("actor 0 child 77", role="child", group="actor", rank=0, is_final=True)
            gone = await hub.fleet.join_rank(3)
            hub.fleet.leave(gone)
            tree = (await ask(root))["tree"]
            assert tree["ranks"] == "actor/0,1,critic/0,driver"
            assert (await ask(root, ranks="actor/all"))["tree"]["ranks"] == "actor/0,1"
            assert (await ask(root, ranks="first"))["tree"]["members"] == ["actor-0"]
            assert (await ask(root, ranks="actor/7"))["count"] == 0
            some = await ask(root, members=[child.id, "nobody", "actor-1"])
            assert some["tree"]["ranks"] == "actor/1,actor 0 child 77"
            with pytest.raises(DapError, match="Rank set"):
                await ask(root, ranks="1-")

    run(work())


def test_late_and_garbled_and_failing_members_are_named() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            late, garbled, old, good = [await hub.fleet.join_rank(rank) for rank in range(4)]
            late.silent.add("stacks")
            garbled.stacks = {"packed": b"\xc1\xc1"}
            old.stacks = {}
            answer = await ask(root)
            assert [one["label"] for one in answer["late"]] == ["actor 0"]
            assert "no answer within" in answer["late"][0]["why"]
            assert "another host" in answer["late"][0]["why"]
            assert set(answer["failed"]) == {"actor 1", "actor 2"}
            assert "cannot be read" in answer["failed"]["actor 1"]
            assert answer["tree"]["members"] == [good.id]
            assert answer["count"] == 1

    run(work())


def test_locals_that_are_garbage_or_megabytes() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            garbled, loud = [await hub.fleet.join_rank(rank) for rank in range(2)]
            garbled.stacks = {**stacks_of(0, 2), "locals": [[0, 5]]}
            loud.stacks = {**stacks_of(1, 2), "locals": [[0, [[f"v{at}", "x" * 10_000] for at in range(1000)]]]}
            answer = await ask(root, withLocals=True)
            assert set(answer["failed"]) == {"actor 0"}
            (step,) = (node for node in walk(answer["tree"]) if "locals" in node)
            assert step["name"] == "train_step"
            assert len(step["locals"][loud.id]) == 100
            assert len(step["locals"][loud.id][0]["text"]) == 200

    run(work())


def walk(node: Node) -> list[Node]:
    return [node, *(below for child in node["children"] for below in walk(child))]


def test_paused_ranks_are_in_it() -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            paused, blocked = [await hub.fleet.join_rank(rank) for rank in range(2)]
            for member in (paused, blocked):
                member.stacks = stacks_of(member.facts.rank or 0, 64)
            paused.stop()
            answer = await ask(root)
            states = {node["members"][0]: node["state"] for node in walk(answer["tree"]) if "state" in node}
            assert states[paused.id] == "paused"
            assert states[blocked.id] == "blocked"

    run(work())


# --- py-spy ---------------------------------------------------------------------------------------


def spy(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let this shell script be py-spy."""
    path = folder / "py-spy"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setattr(native_stacks, "executable", lambda: str(path))


DUMP = """cat <<'EOF'
[{"thread_name": "MainThread", "active": true, "frames": [
  {"name": "nanosleep", "filename": "/lib/libc.so.6", "module": "/lib/libc.so.6", "line": 0},
  {"name": "step", "filename": "/code/train.py", "module": null, "line": 9},
  {"name": "call", "filename": "/x/autograd.cpp", "module": "/x/libtorch.so", "line": 5},
  {"name": "<module>", "filename": "/code/train.py", "module": null, "line": 20},
  {"name": "_start", "filename": "/bin/python", "module": "/bin/python", "line": 0}]},
 {"thread_name": "rankscope", "active": false, "frames": []}]
EOF"""


def test_native_frames_of_who_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            stuck, fine = [await hub.fleet.join_rank(rank) for rank in range(2)]
            stuck.silent.add("stacks")
            stuck.is_local = fine.is_local = True
            answer = await ask(root)
            assert answer["native"] == ["actor 0"] and not answer["late"] and answer["count"] == 2
            path = next(n for n in answer["tree"]["children"] if n["members"] == [stuck.id])
            names = [(node["name"], node["kind"]) for node in walk(path)]
            assert names == [("<module>", "own"), ("step", "own"), ("nanosleep", "native")]
            everybody = await ask(root, native=True)
            assert everybody["native"] == ["actor 0", "actor 1"]
            assert [leaf["name"] for leaf in leaves(everybody["tree"])] == ["nanosleep"]

    spy(tmp_path, monkeypatch, DUMP)
    run(work())


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'Error: Permission Denied: Try running again' >&2; exit 1", "does not let it trace"),
        ("echo 'Error: No such process' >&2; exit 1", "py-spy: No such process"),
        ("echo nonsense", "cannot be read"),
        ("exec sleep 60", "did not answer within"),
    ],
)
def test_why_there_are_no_native_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str) -> None:
    async def work() -> None:
        async with FakeHub() as hub:
            root = await hub.root_session(sessions="single")
            stuck, fine = [await hub.fleet.join_rank(rank) for rank in range(2)]
            stuck.silent.add("stacks")
            stuck.is_local = fine.is_local = True
            answer = await ask(root, native=True)
            assert why in answer["late"][0]["why"]
            assert why in answer["failed"]["actor 1"]
            assert (answer["native"], answer["count"]) == ([], 1)

    monkeypatch.setattr(native_stacks, "SECONDS", 1.0)
    spy(tmp_path, monkeypatch, script)
    run(work())


def test_py_spy_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", os.defpath)
    with pytest.raises(DapError, match="pip install py-spy"):
        native_stacks.executable()
    (tmp_path / "py-spy").write_text("")
    assert native_stacks.executable() == str(tmp_path / "py-spy")
