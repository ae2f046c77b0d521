"""The prefix tree of many ranks' stacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.dap.framing import encode
from rankscope.hub.stacks import Frame, Reader, Thread, Tree
from rankscope.ranks import RankFacts, RankSet, write_set
from support.simulated_ranks import stacks_of

Node = dict[str, Any]
MAIN: Frame = ("main", "/w/train.py", 80, "own")
STEP: Frame = ("train_step", "/w/train.py", 42, "own")
SAVE: Frame = ("save", "/w/train.py", 50, "own")
REDUCE: Frame = ("all_reduce", "/venv/lib/python3.11/site-packages/torch/c10d.py", 9, "library")
WORLD = 16


def facts_of(rank: int) -> RankFacts:
    return RankFacts(group="world", rank=rank, is_final=True)


def described(tree: Tree) -> Node:
    ids = [f"m{number}" for number in range(WORLD)]
    return tree.described(ids, lambda who: write_set(map(facts_of, who)))


def walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node["children"]:
        yield from walk(child)


def test_equal_prefixes_are_one_path_and_outliers_come_first() -> None:
    tree = Tree()
    tree.add([*range(7), *range(8, 16)], Thread("", "all_reduce", (MAIN, STEP, REDUCE)))
    tree.add([7], Thread("", "", (MAIN, SAVE)))
    tree.add(range(16), Thread("pin_memory", "", (STEP,)))
    root = described(tree)
    assert (root["name"], root["ranks"], len(root["members"])) == ("", "0-15", 16)
    main, pin = root["children"]
    assert (main["name"], main["line"], main["ranks"]) == ("main", 80, "0-15")
    assert [(child["name"], child["ranks"]) for child in main["children"]] == [
        ("save", "7"),
        ("train_step", "0-6,8-15"),
    ]
    save, step = main["children"]
    assert (save["state"], "call" in save) == ("running", False)
    assert (step["state"], step["call"]) == ("blocked", "all_reduce")  # on the person's own frame
    assert step["children"][0]["kind"] == "library" and "state" not in step["children"][0]
    assert (pin["kind"], pin["name"]) == ("thread", "pin_memory")


def test_who_is_paused_is_said_and_locals_are_by_member() -> None:
    tree = Tree()
    tree.add([1], Thread("", "", (MAIN, STEP)), "paused", {1: [{"name": "loss", "text": "0.25"}]})
    tree.add([2], Thread("", "all_reduce", (MAIN, STEP, REDUCE)), "", {2: [{"name": "loss", "text": "nan"}]})
    step = described(tree)["children"][0]["children"][0]
    assert step["state"] == "paused"
    assert step["locals"] == {"m1": [{"name": "loss", "text": "0.25"}], "m2": [{"name": "loss", "text": "nan"}]}


FRAMES = st.tuples(
    st.sampled_from("abc"),
    st.sampled_from(["/w/x.py", "/w/y.py"]),
    st.integers(1, 3),
    st.sampled_from(["own", "library"]),
)
STACKS = st.lists(st.lists(FRAMES, max_size=6).map(tuple), min_size=1, max_size=WORLD)


@settings(deadline=None)
@given(STACKS, st.data())
def test_every_member_ends_in_one_place_and_counts_add_up(stacks: list[tuple[Frame, ...]], data: st.DataObject) -> None:
    tree = Tree()
    order = data.draw(st.permutations(range(len(stacks))))
    for number in order:
        tree.add([number], Thread("", "", stacks[number]))
    root = described(tree)
    assert root["members"] == [f"m{number}" for number in range(len(stacks))]
    for node in walk(root):
        below = [member for child in node["children"] for member in child["members"]]
        assert len(below) == len(set(below)), "a member is in two branches"
        assert set(below) <= set(node["members"])
        assert [len(child["members"]) for child in node["children"]] == sorted(
            len(c["members"]) for c in node["children"]
        )
        ranks = RankSet.parse(node["ranks"])
        assert {f"m{n}" for n in range(WORLD) if ranks.contains(facts_of(n))} == set(node["members"])
    for number, stack in enumerate(stacks):
        node = root
        for frame in stack:
            (node,) = (c for c in node["children"] if (c["name"], c["path"], c["line"], c["kind"]) == frame)
            assert f"m{number}" in node["members"]
        assert not any(f"m{number}" in child["members"] for child in node["children"])


@settings(deadline=None)
@given(STACKS)
def test_merging_equal_stacks_first_changes_nothing(stacks: list[tuple[Frame, ...]]) -> None:
    one, other = Tree(), Tree()
    for number, stack in enumerate(stacks):
        one.add([number], Thread("", "", stack))
    for stack in dict.fromkeys(stacks):
        other.add([n for n, each in enumerate(stacks) if each == stack], Thread("", "", stack))
    assert described(one) == described(other)


def test_equal_answers_are_read_once() -> None:
    reader = Reader(lambda path: path.replace("/work", "/here"))
    first, same, another = (reader.read(stacks_of(rank, 64)) for rank in (5, 5, 6))
    assert first is same and first is not another
    assert first[0].frames[0] == ("<module>", "/here/train.py", 80, "own")
    assert [thread.name for thread in first] == ["", "Thread (serve)"]


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"\xc1",
        msgpack.packb(5),
        msgpack.packb([["/x.py"], [["f", 7, True]], [["", "", [0, 1]]], 0]),
        msgpack.packb([["/x.py"], [["f", 0, True]], [["", "", [0, 1, 0]]], 0]),
        msgpack.packb([["/x.py"], [["f", 0, True]], [["", "", [0, "x"]]], 0]),
        msgpack.packb([[b"\xff"], [], [], 0]),
        msgpack.packb([["/x.py"], [["f", 0, True]], [["", "", [0, 1] * 300]], 0]),
        b"x" * (5 << 20),
    ],
    ids=[
        "empty",
        "no msgpack",
        "a number",
        "no such path",
        "odd",
        "a text for a line",
        "bytes for a path",
        "too deep",
        "megabytes",
    ],
)
def test_garbage_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        Reader(str).read({"packed": packed})
    with pytest.raises(ValueError, match="cannot be read"):
        Reader(str).read({"threads": [{"thread": 3}]})


def test_a_tree_as_deep_as_an_agent_may_send_can_be_told() -> None:
    codes = [[f"f{at}", 0, True] for at in range(250)]
    packed = msgpack.packb([["/x.py"], codes, [["", "", [n for at in range(250) for n in (at, 1)]]], 0])
    (thread,) = Reader(str).read({"packed": packed})
    tree = Tree()
    tree.add([0], thread)
    assert encode(described(tree)).count(b'"children":[{') == 250


def test_deeper_stacks_keep_both_ends() -> None:
    frames = [{"name": f"f{at}", "path": "/x.py", "line": 1} for at in range(500)]
    (thread,) = Reader(str).read({"threads": [{"thread": "MainThread", "is_main": True, "frames": frames}]})
    assert len(thread.frames) == 201
    assert thread.frames[150][0] == "… 300 frames left out"
    assert (thread.frames[0][0], thread.frames[-1][0]) == ("f499", "f0")
