"""Rank sets: the table is shared with the TypeScript side, so that both read them alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rankscope.errors import LocationError, RankSetError, UserError
from rankscope.ranks import RankFacts, RankId, RankSet

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
