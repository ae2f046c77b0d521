"""What is told from the first look: who has what alike, and what is meant to differ."""

from __future__ import annotations

from typing import Any

import pytest

from rankscope.checks import plan
from rankscope.checks.learn import learn

pytestmark = pytest.mark.core

Families = dict[str, dict[str, Any]]


def entry(name: str, digest: str, shape: tuple[int, ...] = (2,), peers: str = "", note: str = "") -> list[Any]:
    return [name, "tensor", list(shape), "torch.float32", "", peers, digest, note, ""]


def rank(parameters: dict[str, str], **more: dict[str, str]) -> dict[str, list[list[Any]]]:
    families = {"parameters": parameters, **more}
    return {family: [entry(*each) for each in held.items()] for family, held in families.items()}


def test_all_alike() -> None:
    for learned in learn([rank({"a": "1", "b": "2"})] * 4):
        assert (learned.ranks, learned.left_out, learned.peers) == ([0, 1, 2, 3], [], {})


def test_one_that_missed_a_broadcast_stays_compared() -> None:
    for ranks in (2, 4):
        posts = [rank({"a": "1", "b": "2"}) for _ in range(ranks - 1)] + [rank({"a": "1", "b": "3"})]
        assert all(each.left_out == [] and not each.peers for each in learn(posts))


def test_a_family_that_is_nowhere_alike_is_left_out() -> None:
    posts = [
        rank({"a": "1"}, gradients={"a.grad": f"{at}"}, **{"rng.python": {"rng.python": f"{at}"}}) for at in range(3)
    ]
    assert [each.left_out for each in learn(posts)] == [["gradients", "rng.python"]] * 3


def test_stages_of_a_pipeline() -> None:
    first, second = rank({"first.a": "1"}), rank({"second.a": "2"})
    assert [each.ranks for each in learn([first, second, first, second])] == [[0, 2], [1, 3]] * 2
    assert [each.ranks for each in learn([first, second])] == [[0], [1]]
    assert [each.ranks for each in learn([first, second, {}, {}, {}])] == [[0], [1], [2], [3], [4]]
    assert [each.ranks for each in learn([first, second, second, rank({"x": "1"})])] == [[0], [1, 2], [1, 2], [3]]
    # One that lacks something is no stage: it is at fault.
    assert learn([first, first, second])[0].ranks == [0, 1, 2]


def test_tensor_parallel_ranks_are_told_by_the_process_groups() -> None:
    posts = [rank({"norm": "1", "column": f"{at % 2}"}) for at in range(4)]
    known = [[0, 1], [2, 3], [0, 2], [1, 3]]
    assert [each.peers for each in learn(posts, known)] == [{"column": "0,2"}, {"column": "1,3"}] * 2
    assert [each.peers for each in learn(posts, [[0, 1, 2, 3]])] == [{}] * 4


def test_the_state_of_a_partitioned_optimizer_is_left_out() -> None:
    posts = [rank({"a": "1"}, optimizer={f"{at}.exp_avg": "1"}) for at in range(2)]
    assert [each.left_out for each in learn(posts)] == [["optimizer"]] * 2


def test_the_plan_groups_by_bits_and_names_what_does_not_fit() -> None:
    common = [
        entry("a", "1"),
        entry("b", "1"),
        entry("skipped", "", note="no values"),
        entry("shard", "5", peers="0,1"),
    ]
    other = [entry("a", "2"), entry("b", "1", shape=(3,)), entry("skipped", ""), entry("shard", "6", peers="0,1")]
    made = plan.made([common, common, other, common], ["nothing"])
    assert [(each.name, each.groups) for each in made.suspects] == [
        ("a", [[0, 1, 3], [2]]),
        ("shard", [[0, 1, 3], [2]]),
    ]
    assert [(each.name, each.what, each.texts) for each in made.misfits] == [("b", "shape", ["2", "3"])]
    assert made.skipped == {"skipped": ("no values", [0, 1, 3])}
    assert plan.Plan.unpacked(made.packed()) == made
    assert plan.made([common, other], ["a", "b", "shard"]).suspects == []


def test_replicas_of_different_sizes_are_not_compared_element_by_element() -> None:
    small, large = entry("w", "1", peers="0,1"), entry("w", "2", peers="0,1")
    small[-1], large[-1] = "[(2,)]", "[(3,)]"
    made = plan.made([[small], [large]])
    assert not made.suspects and [each.what for each in made.misfits] == ["shape"]


def test_the_first_look_compares_shards_with_their_replicas() -> None:
    lines = [{"structure": "s", "roots": {"": "1", f"{at % 2},{at % 2 + 2}": f"{at % 2}"}} for at in range(4)]
    assert plan.are_equal(lines)
    lines[3]["roots"] = {"": "1", "1,3": "0"}
    assert not plan.are_equal(lines)
    lines[3] = {"structure": "t", "roots": {}}
    assert not plan.are_equal(lines)
