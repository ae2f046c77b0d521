"""Rank sets: the table is shared with the TypeScript side, so that both read them alike."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.errors import LocationError, RankSetError, UserError
from rankscope.ranks import RankFacts, RankId, RankSet, write_set

TABLE: dict[str, Any] = json.loads((Path(__file__).parents[2] / "support" / "rank_sets.json").read_text())
MEMBERS = {name: RankFacts(**facts) for name, facts in TABLE["members"].items()}


@pytest.mark.parametrize("row", TABLE["sets"], ids=lambda row: row["text"])
def test_a_set_contains_the_right_members(row: dict[str, Any]) -> None:
    ranks = RankSet.parse(row["text"], row.get("names"))
    answers = {name: ranks.contains(facts) for name, facts in MEMBERS.items()}
    expected = {name: None if name in row["unknown"] else name in row["in"] for name in MEMBERS}
    assert answers == expected
    assert str(ranks) == row["text"]


@pytest.mark.parametrize("row", TABLE["errors"], ids=lambda row: f"{row['text']}: {row['why']}")
def test_a_bad_set_points_at_the_fault(row: dict[str, Any]) -> None:
    with pytest.raises(RankSetError) as caught:
        RankSet.parse(row["text"], row.get("names"))
    text = row.get("of", row["text"])
    assert caught.value.code == "bad-rank-set"
    assert (caught.value.text, caught.value.at) == (text, row["at"])
    assert caught.value.message == f"Rank set '{text}': {row['why']} at column {row['at'] + 1}."
    assert "actor/0-3" in caught.value.hint


def test_all_is_told_apart() -> None:
    assert RankSet.parse(" all ").is_all
    assert not RankSet.parse("all,driver").is_all


def test_a_rank_is_written_as_group_and_number() -> None:
    assert str(RankId("actor", 3)) == "actor/3"


def test_facts_change_by_copy() -> None:
    facts = RankFacts(group="actor", rank=1)
    assert facts.with_changes(rank=2, is_final=True) == RankFacts(group="actor", rank=2, is_final=True)
    assert facts.rank == 1


def test_an_error_reads_as_message_and_hint() -> None:
    assert str(UserError("x", "It broke.", "Mend it.")) == "It broke. Mend it."
    assert str(UserError("x", "It broke.")) == "It broke."
    error = LocationError("train.py", "the line is missing")
    assert error.code == "bad-location"
    assert error.message == "Location 'train.py': the line is missing."


# --- writing --------------------------------------------------------------------------------------


def ranks_of(numbers: Iterable[int], group: str = "world") -> list[RankFacts]:
    return [RankFacts(group=group, rank=number, is_final=True) for number in numbers]


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], ""),
        ([5], "5"),
        ([1, 0], "0,1"),
        (range(7), "0-6"),
        ([*range(7), *range(8, 16)], "0-6,8-15"),
        (range(0, 64, 2), "0-62:2"),
        ([0, 2, 4], "0,2,4"),
        ([0, 2, 3, 4], "0,2-4"),
        ([number for number in range(64) if number % 8 in (0, 1)], "0-56:8,1-57:8"),
        ([number for number in range(32) if number % 16], "1-15,17-31"),
    ],
)
def test_ranks_are_written_short(numbers: Iterable[int], text: str) -> None:
    assert write_set(ranks_of(numbers)) == text


def test_groups_are_named_where_there_are_several() -> None:
    actor, critic = ranks_of([0, 1, 2, 5], "actor"), ranks_of([0], "critic")
    driver = RankFacts(role="driver")
    assert write_set([driver, *critic, *actor]) == "actor/0-2,5,critic/0,driver"
    assert write_set(critic) == "0"
    assert write_set(critic, among=[*actor, *critic]) == "critic/0"
    assert write_set([RankFacts(role="child"), RankFacts(role="idle")]) == ""


MEMBERS_OF_ANY_JOB = st.sets(
    st.one_of(
        st.builds(
            RankFacts,
            group=st.sampled_from(["", "actor", "critic/0", "all", "1"]),
            rank=st.integers(0, 40),
            is_final=st.just(value=True),
        ),
        st.just(RankFacts(role="driver")),
    ),
    min_size=1,
)


@settings(deadline=None)
@given(MEMBERS_OF_ANY_JOB, st.data())
def test_what_is_written_reads_back_as_exactly_these(job: set[RankFacts], data: st.DataObject) -> None:
    if any(facts.group for facts in job):
        job = {facts for facts in job if facts.group or facts.role == "driver"}  # a bare number is of any group
    chosen = data.draw(st.sets(st.sampled_from(sorted(job, key=str)), min_size=1))
    ranks = RankSet.parse(write_set(chosen, among=job))
    assert {facts for facts in job if ranks.contains(facts)} == chosen


@settings(deadline=None)
@given(st.sets(st.integers(0, 2000), min_size=1))
def test_no_list_of_numbers_is_shorter_than_what_is_written(numbers: set[int]) -> None:
    text = write_set(ranks_of(numbers))
    assert len(text) <= len(",".join(map(str, numbers)))
    ranks = RankSet.parse(text)
    assert {number for number in range(2010) if ranks.contains(ranks_of([number])[0])} == numbers


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        ("all", ""),
        ("0-3", ""),
        ("0-7", "4-7"),
        ("world/2-5,7", "world/4,5,world/7"),
        ("critic/9", "critic/9"),
        ("critic/all,driver", "critic/all,driver"),
        ("local:0,node:7", "node:7"),
        ("0-12:4", "4,8,12"),
        ("0-999999999", "4-10000,…"),
    ],
)
def test_a_set_says_what_of_it_nobody_has(text: str, absent: str) -> None:
    there = [RankFacts(group="world", rank=rank, local_rank=rank, node=0, is_final=True) for rank in range(4)]
    assert RankSet.parse(text).absent(there) == absent
