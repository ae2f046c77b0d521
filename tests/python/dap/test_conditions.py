"""What stands in a breakpoint's fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rankscope.agent import hits
from rankscope.errors import UserError
from rankscope.hub.conditions import Condition, exception_names, log_message, spelled, split_barrier, split_comment
from rankscope.ranks import RankFacts, RankSet

TABLE: list[dict[str, Any]] = json.loads((Path(__file__).parents[2] / "support" / "conditions.json").read_text())


@pytest.mark.parametrize("row", TABLE, ids=lambda row: repr(row["text"]))
def test_the_extension_reads_conditions_alike(row: dict[str, Any]) -> None:
    text, comment = split_comment(row["text"])
    assert ("" if text == "True" else text) == row["expression"]
    ranks, is_barrier = split_barrier(comment[1:].strip()) if comment.startswith("@") else (None, False)
    assert (ranks, is_barrier) == (row["ranks"], row.get("isBarrier", False))


@pytest.mark.parametrize(
    ("text", "expression", "ranks"),
    [
        ("loss > 10  # @actor/0", "loss > 10", "actor/0"),
        ("True  # @0,3-5", "", "0,3-5"),
        ("  # @driver", "", "driver"),
        ("x == '# @1'", "x == '# @1'", None),
        ("x == '#'  # @2", "x == '#'", "2"),
        ("x  # a remark", "x", None),
        ("  a\n and b  # @2", "a and b", "2"),
        ("", "", None),
    ],
)
def test_a_rank_set_rides_in_the_trailing_comment(text: Any, expression: Any, ranks: Any) -> None:
    condition = Condition.parse(text)
    assert condition.expression == expression
    assert (condition.ranks and condition.ranks.text) == ranks


def test_names_and_modes() -> None:
    heads = Condition.parse("# @heads", names={"heads": "0,4"}).ranks
    assert heads is not None and heads.contains(RankFacts(rank=4, is_final=True))
    assert str(Condition.parse(None, mode="firstOfNode").ranks) == "local:0"
    assert str(Condition.parse("# @3", mode="rank0").ranks) == "3"
    barrier = Condition.parse("# @0-3", mode="barrier")
    assert (str(barrier.ranks), barrier.is_barrier) == ("0-3", True)
    assert str(Condition.parse(None, mode="barrier").ranks) == "all"
    assert not Condition.parse("# @barrier", names={"barrier": "0"}).is_barrier
    with pytest.raises(UserError, match="Mode 'some'"):
        Condition.parse(None, mode="some")


@pytest.mark.parametrize(
    ("condition", "hit", "says"),
    [
        ("x =", None, "Condition 'x =': invalid syntax at column 3"),
        ("x = 3", None, "Condition 'x = 3': "),
        ("(x", None, r"Condition '\(x': "),
        ("x) or (y", None, "Condition 'x.*y': "),
        ("x  # @0,,2", None, "Rank set '0,,2': a part is missing at column 3"),
        (None, "often", "Hit count 'often': write 5"),
        (None, "%0", "Hit count '%0': a remainder of 0"),
    ],
)
def test_malformed_fields_are_refused(condition: Any, hit: Any, says: Any) -> None:
    with pytest.raises(UserError, match=says):
        Condition.parse(condition, hit)


def test_the_members_condition_tests_rank_then_expression_then_counts() -> None:
    condition = Condition.parse("a or b  # @actor/0,2", ">=2")
    assert condition.in_member("k", is_rank_sure=True) == (
        "(a or b) and __import__(\"rankscope.agent.hits\", fromlist=[\"counts\"]).counts('k', '>=', 2)"
    )
    assert "in_rank_set('actor/0-0:1,actor/2-2:1') and (a or b)" in str(condition.in_member("k", is_rank_sure=False))
    assert Condition.parse("True").in_member("k", is_rank_sure=True) is None


def test_a_condition_with_a_hit_count_runs() -> None:
    condition = Condition.parse("i % 2 == 0", "%2").in_member("unique", is_rank_sure=True)
    assert [i for i in range(10) if eval(str(condition), {}, {"i": i})] == [2, 6]


@pytest.mark.parametrize(
    ("how", "stops"),
    [("3", [3]), ("==3", [3]), (">=3", [3, 4, 5]), ("<=2", [1, 2]), (">4", [5]), ("<2", [1]), ("% 2", [2, 4])],
)
def test_hit_counts(how: Any, stops: Any) -> None:
    test = Condition.parse(None, how).hit
    assert test is not None
    assert [number for number in range(1, 6) if hits.counts(f"test {how}", *test)] == stops


@pytest.mark.parametrize(
    "text", ["all", "0,3-5", "0-31:4", "local:0", "node:1", "actor/0-3,7", "actor/all", "driver", "a/0,all"]
)
def test_a_spelled_set_holds_the_same(text: Any) -> None:
    ranks = RankSet.parse(text)
    assert sorted(map(str, RankSet.parse(spelled(ranks)).parts)) == sorted(map(str, ranks.parts))


def test_log_messages() -> None:
    assert log_message("100% of {x % 2}") == "100%% of {x % 2}"
    assert log_message("100%") == "100%"
    assert log_message("{ {'a': 1}['a'] }") == "{ {'a': 1}['a'] }"
    for text, says in [
        ("{x", "'{' at column 1 is not closed"),
        ("x}", "without its"),
        ("{}", "nothing"),
        ("{x=}", "x="),
    ]:
        with pytest.raises(UserError, match=says):
            log_message(text)


def test_exception_names() -> None:
    assert exception_names("ValueError, my.Error") == ("ValueError", "my.Error")
    with pytest.raises(UserError, match="'a b' is no name"):
        exception_names("a b")


def test_comments_of_several_lines() -> None:
    assert split_comment("(a or\n b)  # @1") == ("(a or b)", "@1")
