"""Ray's workers join through the runtime_env, whatever the person has in it already."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rankscope.agent import ray_hook, ray_worker
from support.fake_hub import FakeHub

JOBS = Path(__file__).resolve().parents[2] / "jobs"


@pytest.fixture
def in_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKSCOPE_JOB", "job-1")
    monkeypatch.setenv("RANKSCOPE_JOB_FILE", "/absent/job.json")
    monkeypatch.setattr(ray_hook, "_is_remote", False)


def test_outside_a_job_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANKSCOPE_JOB", raising=False)
    theirs = {"env_vars": {"A": "1"}}
    assert ray_hook.runtime_env_hook(theirs) is theirs


@pytest.mark.usefixtures("in_a_job")
def test_extends_and_never_replaces() -> None:
    theirs = {"env_vars": {"A": "1", "PYTHONPATH": "/theirs"}, "working_dir": "/w"}
    made = ray_hook.runtime_env_hook(theirs)
    assert theirs == {"env_vars": {"A": "1", "PYTHONPATH": "/theirs"}, "working_dir": "/w"}
    assert made["working_dir"] == "/w"
    assert made["env_vars"]["A"] == "1"
    assert made["env_vars"]["PYTHONPATH"].endswith(":/theirs")
    assert made["worker_process_setup_hook"] == ray_hook.HOOK
    assert ray_hook.runtime_env_hook(made) is made
    assert ray_hook.runtime_env_hook(None)["env_vars"]["PYTHONPATH"].endswith(":${PYTHONPATH}")


@pytest.mark.usefixtures("in_a_job")
def test_a_named_setup_hook_is_chained(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ray_hook.with_agent({"worker_process_setup_hook": "json.dumps_of_mine"})
    ran: list[int] = []
    monkeypatch.setattr(json, "dumps_of_mine", lambda: ran.append(1), raising=False)
    monkeypatch.setattr(ray_worker, "_join", lambda: ran.append(0))
    monkeypatch.setenv(ray_worker.CHAIN_VARIABLE, made["env_vars"][ray_worker.CHAIN_VARIABLE])
    ray_worker.worker_setup_hook()
    assert ran == [0, 1]


@pytest.mark.usefixtures("in_a_job")
def test_a_callable_setup_hook_is_chained_and_its_error_stays_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def theirs() -> None:
        raise KeyError("mine")

    def broken() -> None:
        raise ValueError("ours")

    monkeypatch.setattr(ray_worker, "_join", broken)
    monkeypatch.delenv(ray_worker.CHAIN_VARIABLE, raising=False)
    with pytest.raises(KeyError, match="mine"):
        ray_hook.with_agent({"worker_process_setup_hook": theirs})["worker_process_setup_hook"]()


@pytest.mark.usefixtures("in_a_job")
def test_the_persons_own_runtime_env_hook_runs_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def own(runtime_env: object) -> dict[str, object]:
        return {"env_vars": {"OWN": "1"}}

    monkeypatch.setattr(json, "own_hook", own, raising=False)
    monkeypatch.setenv(ray_hook.HOOK_CHAIN_VARIABLE, "json.own_hook")
    assert ray_hook.runtime_env_hook(None)["env_vars"]["OWN"] == "1"


@pytest.mark.usefixtures("in_a_job")
def test_what_cannot_be_extended_is_given_back() -> None:
    broken = {"env_vars": 7}
    assert ray_hook.with_agent(broken) is broken


@pytest.mark.usefixtures("in_a_job")
def test_no_secret_in_the_runtime_env(tmp_path: Path) -> None:
    with FakeHub(tmp_path) as hub:
        assert hub.endpoint.secret not in json.dumps(ray_hook.with_agent(None))


@pytest.mark.ray
@pytest.mark.torch
@pytest.mark.slow
def test_actors_of_an_unmodified_driver_become_ranks(tmp_path: Path) -> None:
    with FakeHub(tmp_path) as hub, hub.job(str(JOBS / "ray_actors.py")) as job:
        out, _ = job.communicate(timeout=90)
        assert job.returncode == 0, out
        assert "RESULT done" in out
        ranks = [x for x in hub.members if x.facts.role == "rank"]
        assert sorted((x.facts.group, x.facts.rank, x.facts.world_size) for x in ranks) == [
            ("Trainer", rank, 4) for rank in range(4)
        ]
        for x in ranks:
            assert [(facts.role, facts.is_final) for facts in x.history] == [
                ("idle", False),
                ("rank", False),
                ("rank", True),
            ]
        drivers = [x for x in hub.members if x.facts.role == "driver"]
        assert [x.hello.name for x in drivers] == ["ray_actors.py"]
        assert {x.facts.role for x in hub.members} <= {"driver", "rank", "idle"}
