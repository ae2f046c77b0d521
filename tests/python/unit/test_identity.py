"""Which rank a process is."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from rankscope.agent import identity
from rankscope.ranks import RankFacts
from rankscope.wire.link import PARENT_VARIABLE
from support.fake_hub import FakeHub

JOBS = Path(__file__).resolve().parents[2] / "jobs"


def _parent(facts: RankFacts) -> identity.Parent:
    return identity.Parent("p", facts)


DRIVER = _parent(RankFacts(role="driver"))


def test_the_first_process_is_the_driver() -> None:
    assert identity.of_process({}, None) == RankFacts(role="driver")


def test_torchrun() -> None:
    env = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "ROLE_NAME": "default"}
    assert identity.of_process(env, DRIVER) == RankFacts("rank", "world", 5, 8, 1, is_final=True)
    assert identity.of_process({**env, "ROLE_NAME": "critic"}, DRIVER).group == "critic"


def test_a_child_inherits_its_ranks_environment() -> None:
    rank = RankFacts("rank", "world", 5, 8, 1, is_final=True)
    assert identity.of_process({"RANK": "5"}, _parent(rank)) == rank.with_changes(role="child")
    assert identity.of_process({}, DRIVER).role == "child"
    provisional = RankFacts("rank", "Trainer", 1)
    assert identity.of_process({"RANK": "0"}, _parent(provisional)).role == "child"


def test_mpirun_starts_ranks_without_a_parent() -> None:
    env = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
    assert identity.of_process(env, None) == RankFacts("rank", "world", 3, 4, 1, is_final=True)


def test_verl_workers_take_the_local_rank_from_the_actors_name() -> None:
    env = {"RANK": "6", "WORLD_SIZE": "8", "WG_PREFIX": "ab12", "LOCAL_RANK": "0"}
    facts = identity.of_actor(env, "WorkerDict", "ab12WorkerDict_1:2")
    assert facts == RankFacts("rank", "ab12", 6, 8, 2, is_final=True)
    assert identity.of_actor({}, "TaskRunner", "").role == "driver"


def test_an_actor_without_rank_is_open() -> None:
    assert identity.of_actor({}, "Trainer", "") == RankFacts("rank", "Trainer")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"member": "x", "facts": {"colour": 1}}'])
def test_a_broken_parent_is_no_parent(text: str) -> None:
    assert identity.read_parent({PARENT_VARIABLE: text}) is None


def test_parent_round_trip() -> None:
    facts = RankFacts("rank", "world", 1)
    text = json.dumps({"member": "m", "facts": asdict(facts)})
    assert identity.read_parent({PARENT_VARIABLE: text}) == identity.Parent("m", facts)


@pytest.mark.parametrize(
    ("line", "name"),
    [("python -u train.py --x", "train.py"), ("python -X dev -m a.b c", "a.b"), ("python", "python")],
)
def test_names(line: str, name: str) -> None:
    assert identity.process_name(line.split()) == name


@pytest.mark.torch
def test_spawn_index_then_world_size(tmp_path: Path) -> None:
    with FakeHub(tmp_path) as hub, hub.job(str(JOBS / "spawn_train.py")) as job:
        out, _ = job.communicate(timeout=60)
        assert job.returncode == 0, out
        assert out.endswith("RESULT done\n")
        ranks = [x for x in hub.members if x.facts.role == "rank"]
        assert sorted((x.facts.group, x.facts.rank, x.facts.world_size) for x in ranks) == [
            ("spawn", 0, 3),
            ("spawn", 1, 3),
            ("spawn", 2, 3),
        ]
        for x in ranks:
            assert [facts.role for facts in x.history] == ["child", "rank", "rank"]
            assert x.history[1].is_final
