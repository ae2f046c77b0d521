"""Provisional ranks of Ray actors: as they were created, not as their workers came up."""

from __future__ import annotations

import pytest

from rankscope.hub.creation_order import CreationOrder

pytestmark = pytest.mark.core


def test_actors_are_numbered_per_class_as_they_were_created() -> None:
    order = CreationOrder()
    for actor, label in (("a", "Actor"), ("c", "Critic"), ("b", "Actor"), ("a", "Actor")):
        order.note(actor, label)
    assert [order.number(actor) for actor in ("b", "c", "a", "unknown")] == [1, 0, 0, None]


def test_the_number_of_one_that_has_ended_is_given_again() -> None:
    order = CreationOrder()
    order.note("a", "Actor")
    order.note("b", "Actor")
    order.forget("a")
    order.note("c", "Actor")
    assert [order.number(actor) for actor in ("a", "b", "c")] == [None, 1, 0]
