"""Who waits for whom, from what ranks have told: by example, and whatever ranks tell."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rankscope.hub.hang_watch import Watch
from rankscope.hub.lineup import Group, Place, Rank, Signature, Stall, Wait, disagreements, line_up
from rankscope.hub.stall_graph import Root, roots

hypothesis = pytest.importorskip("hypothesis")
st: Any = pytest.importorskip("hypothesis.strategies")

WORLD = Group("w", "0", (0, 1, 2, 3), "default_pg")
LEFT, RIGHT = Group("w", "1", (0, 1)), Group("w", "2", (0, 1))
REDUCE = Signature("all_reduce", ((4,),), ("float32",))


def wait(group: Group = WORLD, seq: int = 7, what: Signature = REDUCE, since: float = 100.0) -> Wait:
    return Wait(group, seq, what, since)


def peer(op: str, other: int, seq: int = 1, size: int = 4, tag: int = 0) -> Wait:
    return Wait(WORLD, seq, Signature(op, ((size,),), ("float32",)), 100.0, other, tag)


def ranks(**waits: Wait | list[Wait] | str) -> dict[Place, Rank]:
    """By number (``r0``): what it waits in, or its state when it waits in nothing."""
    found: dict[Place, Rank] = {}
    for name, told in waits.items():
        place = ("w", int(name[1:]))
        state = told if isinstance(told, str) else "running"
        listed = [] if isinstance(told, str) else [told] if isinstance(told, Wait) else told
        found[place] = Rank(place, state, tuple(listed))
    return found


def only(stalls: list[Stall]) -> Stall:
    [stall] = stalls
    return stall


def test_who_has_not_entered_is_missing() -> None:
    stall = only(line_up(ranks(r0=wait(), r1=wait(), r2="running", r3=wait())))
    assert (stall.waiting, stall.missing, stall.unsure) == ([0, 1, 3], [2], [2])
    assert stall.mismatch == ""


def test_who_is_in_a_later_collective_has_left_this_one_and_knows_what_it_ran() -> None:
    told = ranks(r0=wait(), r1=wait(), r2=wait(seq=8), r3=wait())
    told["w", 2].entered[WORLD] = 8
    stall = only(line_up(told))
    assert (stall.ahead, stall.missing, stall.unsure) == ([2], [], [2])
    told["w", 2].recent[WORLD, 7] = Signature("all_reduce", ((2,),), ("float32",))
    stall = only(line_up(told))
    assert stall.mismatch == "size"
    assert [who for _, who in stall.variants] == [[0, 1, 3], [2]]


def test_one_that_never_joined_and_one_that_has_ended_are_missing() -> None:
    stall = only(line_up(ranks(r0=wait(), r1=wait(), r2="exited")))
    assert (stall.missing, stall.unsure) == ([2, 3], [])


@pytest.mark.parametrize(
    ("one", "other", "mismatch"),
    [
        (REDUCE, Signature("broadcast", ((4,),), ("float32",)), "op"),
        (REDUCE, Signature("all_reduce", ((5,),), ("float32",)), "size"),
        (REDUCE, Signature("all_reduce", ((4,),), ("float64",)), "dtype"),
        (REDUCE, Signature("all_reduce", ((2, 2),), ("float32",)), ""),
        (Signature("scatter", ((4,), (4,)), ("float32",) * 2), Signature("scatter", ((4,),), ("float32",)), ""),
        (
            Signature("all_to_all", ((4,), (1,)), ("float32",) * 2),
            Signature("all_to_all", ((1,), (4,)), ("float32",) * 2),
            "",
        ),
        (Signature("_all_gather_base", ((4,),), ("float32",)), Signature("all_gather", ((4,),), ("float32",)), ""),
    ],
)
def test_what_ranks_have_to_agree_in(one: Signature, other: Signature, mismatch: str) -> None:
    stall = only(line_up(ranks(r0=wait(what=one), r1=wait(what=one), r2=wait(what=other), r3=wait(what=one))))
    assert stall.mismatch == mismatch


def test_sub_groups_that_wait_for_each_other_are_a_circle_and_the_world_waits_behind_it() -> None:
    told = ranks(r0=wait(LEFT, 1), r1=wait(RIGHT, 1), r2=wait(seq=2), r3=wait(seq=2))
    stalls = line_up(told)
    [root] = roots(stalls)
    assert root.is_cycle
    assert {stall.group for stall in root.stalls} == {LEFT, RIGHT}


def test_the_end_of_a_chain_is_what_has_to_be_mended() -> None:
    told = ranks(r0=peer("recv", 1), r1=peer("recv", 2), r2=peer("recv", 3), r3="running")
    [root] = roots(line_up(told))
    assert (only(root.stalls).waiting, only(root.stalls).missing) == ([2], [3])


def test_two_receives_from_each_other_are_a_circle() -> None:
    [root] = roots(line_up(ranks(r0=peer("recv", 1), r1=peer("recv", 0))))
    assert root.is_cycle


def test_a_receive_whose_send_was_posted_waits_for_nobody() -> None:
    told = ranks(r0=peer("recv", 1, seq=2), r1="running")
    assert only(line_up(told)).missing == [1]
    told["w", 1].counts["send", WORLD, 0, 0] = 2
    assert only(line_up(told)).missing == []


def test_a_receive_from_anybody_waits_for_all_and_is_in_no_circle() -> None:
    told = ranks(r0=peer("recv", -1), r1=peer("recv", 0), r2="running", r3="running")
    assert [root.is_cycle for root in roots(line_up(told))] == [False]
    told["w", 3].counts["send", WORLD, 0, 0] = 1
    stall = next(stall for stall in line_up(told) if stall.waiting == [0])
    assert stall.missing == []


def test_a_send_and_its_receive_of_another_size_disagree() -> None:
    stalls = line_up(ranks(r0=peer("recv", 1, size=4), r1=peer("send", 0, size=8)))
    assert {stall.mismatch for stall in stalls} == {"size"}
    assert all(stall.missing == [] for stall in stalls)


def test_what_ended_ranks_have_run_tells_the_first_disagreement() -> None:
    told = ranks(r0="running", r1="crashed", r2="running")
    for number, size in ((0, 4), (1, 4), (2, 8)):
        told["w", number].recent[WORLD, 3] = REDUCE
        told["w", number].recent[WORLD, 4] = Signature("all_reduce", ((size,),), ("float32",))
    stall = only(disagreements(told))
    assert (stall.seq, stall.mismatch, stall.variants[-1][1]) == (4, "size", [2])


def test_a_long_chain_needs_no_recursion() -> None:
    count = 3000
    group = Group("w", "0", tuple(range(count)))
    told: dict[Place, Rank] = {}
    for number in range(count):
        receive = Wait(group, 1, Signature("recv", ((1,),), ("float32",)), 1.0, (number + 1) % count)
        told["w", number] = Rank(("w", number), "running", (receive,))
    [root] = roots(line_up(told))
    assert root.is_cycle and len(root.stalls) == count


# --- whatever is told -----------------------------------------------------------------------------


def any_ranks(draw: random.Random) -> dict[Place, Rank]:
    """Ranks in any states and waits, also such as no job can get into."""
    groups = [WORLD, LEFT, RIGHT, Group("w", "3", (1, 2, 3))]
    told: dict[Place, Rank] = {}
    for number in range(draw.randrange(1, 6)):
        rank = Rank(("w", number), draw.choice(["running", "running", "running", "paused", "exited", "crashed"]))
        for _ in range(draw.randrange(3)):
            group = draw.choice(groups)
            op = draw.choice(["all_reduce", "barrier"])
            one = Wait(group, draw.randrange(1, 4), Signature(op, ((draw.choice([4, 4, 8]),),), ("float32",)), 100.0)
            two = peer(draw.choice(["send", "recv"]), draw.randrange(-1, 5), draw.randrange(1, 3))
            rank.waits += (draw.choice([one, two]),)
            rank.entered[group] = draw.randrange(5)
        told[rank.place] = rank
    return told


@hypothesis.given(st.randoms(use_true_random=False))
def test_whatever_is_told_something_is_at_the_bottom_of_it(draw: random.Random) -> None:
    told = any_ranks(draw)
    stalls = line_up(told)
    waiting = any(rank.waits for rank in told.values() if rank.is_live)
    assert bool(stalls) == waiting == bool(roots(stalls))
    for stall in stalls:
        assert stall.waiting and len(set(stall.waiting)) == len(stall.waiting)
        assert stall.is_peer or not set(stall.waiting) & set(stall.missing)  # a rank may wait for its own send
        assert all(told["w", number].is_live for number in stall.waiting)
    for root in roots(stalls):
        assert root.is_cycle == (len(root.stalls) > 1)


# --- over time ------------------------------------------------------------------------------------


def test_a_hang_is_due_after_its_time_and_told_once() -> None:
    watch = Watch(30)
    told = ranks(r0=wait(), r1=wait(), r2="running", r3=wait())
    early = watch.look(line_up(told), told, 129.9)
    assert (early.due, early.stuck, early.next) == ([], [], 130.0)
    [root] = watch.look(line_up(told), told, 130.0).due
    watch.note(root)
    later = watch.look(line_up(told), told, 131.0)
    assert (later.due, len(later.stuck), later.next) == ([], 1, None)


def test_a_mismatch_is_due_at_once() -> None:
    watch = Watch(600)
    told = ranks(r0=wait(), r2=wait(what=Signature("barrier")))
    [root] = watch.look(line_up(told), told, 100.0).due
    assert root.mismatch == "op"
    watch.note(root)
    assert not watch.note_mismatch(root)
    assert watch.look(line_up(told), told, 999.0).due == []


def test_whom_the_debugger_stops_hangs_nobody_and_time_begins_anew_when_it_goes_on() -> None:
    watch = Watch(30)
    told = ranks(r0=wait(), r1=wait(LEFT, 1), r2="paused", r3=wait(), r4=wait(Group("w", "9", (1, 4))))
    for now in (100.0, 140.0, 500.0):
        assert watch.look(line_up(told), told, now).due == []
    told["w", 2].state = "running"
    told["w", 1].waits = (wait(),)
    told["w", 4].waits = ()
    assert watch.look(line_up(told), told, 501.0).due == []
    assert watch.look(line_up(told), told, 529.9).due == []
    assert len(watch.look(line_up(told), told, 530.1).due) == 1


def test_a_hang_that_ends_by_itself_is_told_when_nobody_crashed_of_it() -> None:
    for state, is_told in (("running", True), ("crashed", False), ("exited", True)):
        watch = Watch(30)
        told = ranks(r0=wait(), r1=wait(), r2="running", r3=wait())
        watch.note(watch.look(line_up(told), told, 130.0).due[0])
        for number in (0, 1, 3):
            told["w", number].waits = ()
            told["w", number].state = state
        ended = watch.look(line_up(told), told, 140.0).ended
        if state == "running":
            assert ended == []  # it may crash of it yet
            ended = watch.look(line_up(told), told, 142.1).ended
        assert [one.seconds for one in ended] == ([40.0] if is_told else [])
        assert watch.told == {}


def test_off_is_off() -> None:
    told = ranks(r0=wait(), r1=wait(what=Signature("barrier")))
    assert Watch(0).look(line_up(told), told, 1e9).due == []


@hypothesis.given(st.randoms(use_true_random=False))
def test_over_any_course_of_things_nothing_is_told_early_twice_or_of_the_stopped(draw: random.Random) -> None:
    watch = Watch(10)
    now = 100.0
    told = any_ranks(draw)
    for _ in range(12):
        now += draw.choice([0.5, 4.0, 11.0])
        if draw.random() < 0.5:
            rank = told[draw.choice(list(told))]
            rank.state = draw.choice(["running", "paused", "exited"])
        if draw.random() < 0.3:
            told[draw.choice(list(told))].waits = ()
        stalls = line_up(told)
        news = watch.look(stalls, told, now)
        for root in news.due:
            assert root.mismatch or now - root.since >= 10
            assert root.mismatch or not _is_stopped(root, told)
            assert root.key not in {key for key, _ in watch.told} or root.mismatch
            watch.note(root)
        for ended in news.ended:
            assert ended.root.key - {stall.key for stall in stalls}
        assert news.next is None or news.next >= now - 1e-6


def _is_stopped(root: Root, told: dict[Place, Rank]) -> bool:
    awaited = (told.get(("w", number)) for stall in root.stalls for number in stall.missing)
    return any(rank is not None and rank.state == "paused" for rank in awaited)
