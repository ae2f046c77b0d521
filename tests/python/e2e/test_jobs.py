"""Real jobs, source untouched: only the ranks chosen stop, and results and exit code are those of the plain run."""

from __future__ import annotations

import pytest

from support.runs import Run, at, plain, program, python, run

slow = pytest.mark.slow


def same_but_stopped(options: list[str], *command: str, **added: str) -> Run:
    """Run plainly and under RankScope; the results must be the same."""
    under, without = run(options, *command, **added), plain(*command, **added)
    assert (under.exit_code, under.results) == (without.exit_code, without.results), under.errors
    assert without.results
    return under


@slow
@pytest.mark.ray
@pytest.mark.torch
def test_ray_actors_with_gloo() -> None:
    """The main job: an unmodified driver that calls ray.init() itself."""
    options = ["--break", at("ray_actors.py", "step", "@2"), "--print", "loss", "--print", "self.rank"]
    under = same_but_stopped(options, *python("ray_actors.py"), JOB_EXIT_CODE="3")
    assert under.stops == ["Trainer 2"] * 3
    assert [stop["values"][0]["value"][:6] for stop in under.of("stopped")] == ["9.7336", "15.002", "12.776"]
    assert {stop["values"][1]["value"] for stop in under.of("stopped")} == {"2"}
    assert under.exit_code == 3


@slow
@pytest.mark.torch
def test_torchrun() -> None:
    torchrun = (program("torchrun"), "--standalone", "--nproc-per-node", "4", "torchrun_train.py")
    under = same_but_stopped(["--break", at("torchrun_train.py", "step", "@2"), "--print", "loss"], *torchrun)
    assert under.stops == ["world 2"] * 3
    assert under.of("stopped")[0]["stack"][1]["function"] == "main"


@slow
@pytest.mark.torch
def test_torchrun_that_fails() -> None:
    torchrun = (program("torchrun"), "--standalone", "--nproc-per-node", "2", "torchrun_train.py")
    under = same_but_stopped(["--break", at("torchrun_train.py", "step", "@1")], *torchrun, JOB_EXIT_CODE="5")
    assert under.exit_code != 0


@slow
@pytest.mark.torch
def test_a_shell_script_that_starts_torchrun() -> None:
    under = same_but_stopped(["--break", at("torchrun_train.py", "step", "@1 if step == 2")], "bash", "run.sh")
    assert under.stops == ["world 1"]


@slow
@pytest.mark.torch
def test_spawned_ranks_known_by_their_argument() -> None:
    under = same_but_stopped(
        ["--break", at("spawn_train.py", "step", "@2"), "--print", "rank"], *python("spawn_train.py")
    )
    assert [stop["values"][0]["value"] for stop in under.of("stopped")] == ["2"]


@slow
@pytest.mark.torch
def test_forked_data_loader_workers_of_an_armed_process() -> None:
    """Both the loader's workers and the process that forked them stop, and run through."""
    options = ["--break", at("dataloader.py", "getitem"), "--break", at("dataloader.py", "batch")]
    under = same_but_stopped(options, *python("dataloader.py"))
    assert len([rank for rank in under.stops if " child " in rank]) == 8
    assert under.stops.count("driver dataloader.py") == 4


@slow
@pytest.mark.ray
def test_two_groups_with_the_same_ranks() -> None:
    under = same_but_stopped(["--break", at("ray_two_groups.py", "critic", "@Critic/1")], *python("ray_two_groups.py"))
    assert under.stops == ["Critic 1"]


@slow
@pytest.mark.ray
def test_an_actor_that_restarts() -> None:
    """The new incarnation stops as the old one would have."""
    under = same_but_stopped(
        ["--break", at("ray_restart.py", "work"), "--print", "self.rank"], *python("ray_restart.py")
    )
    assert len(under.stops) == 1
    assert under.of("stopped")[0]["values"][0]["value"] == "2"
