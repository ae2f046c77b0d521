"""From launch settings to argv and environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import rankscope
from rankscope.errors import UserError
from rankscope.hub.settings import LaunchSettings
from rankscope.launch import command
from rankscope.launch.command import job_argv, job_environment

PACKAGE = Path(rankscope.__file__).parent


@pytest.mark.parametrize(
    ("settings", "argv"),
    [
        ({"program": "train.py", "args": ["--lr", "1"]}, [sys.executable, "train.py", "--lr", "1"]),
        ({"module": "pkg.train"}, [sys.executable, "-m", "pkg.train"]),
        ({"program": "a.py", "python": "/opt/python"}, ["/opt/python", "a.py"]),
        ({"program": "a.py", "python": ["uv", "run", "python"]}, ["uv", "run", "python", "a.py"]),
        (
            {"command": "torchrun --nproc-per-node 4 'my train.py'"},
            ["torchrun", "--nproc-per-node", "4", "my train.py"],
        ),
        ({"command": "cd x && bash run.sh"}, ["/bin/sh", "-c", "cd x && bash run.sh"]),
        ({"command": "NCCL_DEBUG=INFO python a.py"}, ["/bin/sh", "-c", "NCCL_DEBUG=INFO python a.py"]),
        ({"command": "python a.py --lr=1"}, ["python", "a.py", "--lr=1"]),
        ({"command": ["python", "a b.py", "$x"]}, ["python", "a b.py", "$x"]),
    ],
)
def test_what_is_run(settings: dict[str, Any], argv: list[str]) -> None:
    assert job_argv(LaunchSettings(**settings)) == argv


@pytest.mark.parametrize(
    ("settings", "code"),
    [({}, "nothing-to-run"), ({"command": " "}, "nothing-to-run"), ({"command": "python 'a.py"}, "bad-command")],
)
def test_what_cannot_be_run(settings: dict[str, Any], code: str) -> None:
    with pytest.raises(UserError) as caught:
        job_argv(LaunchSettings(**settings))
    assert caught.value.code == code


def test_the_environment_is_extended(tmp_path: Path) -> None:
    base = {"PYTHONPATH": f"/mine{os.pathsep}relative", "HOME": "/home/me"}
    made = job_environment("abc", tmp_path / "job.json", base)
    assert made["PYTHONPATH"].split(os.pathsep)[0] == str(PACKAGE / "agent" / "site")
    assert made["PYTHONPATH"].endswith(f"/mine{os.pathsep}relative")
    assert made["RANKSCOPE_JOB"] == "abc"
    assert made["RANKSCOPE_JOB_FILE"] == str(tmp_path / "job.json")
    assert made["RAY_RUNTIME_ENV_HOOK"] == command.RAY_HOOK
    assert "RANKSCOPE_RAY_HOOK_CHAIN" not in made
    assert made["HOME"] == "/home/me"
    assert base == {"PYTHONPATH": f"/mine{os.pathsep}relative", "HOME": "/home/me"}


def test_doing_it_twice_changes_nothing(tmp_path: Path) -> None:
    once = job_environment("abc", tmp_path, {"RAY_RUNTIME_ENV_HOOK": "mine.hook"})
    assert once["RANKSCOPE_RAY_HOOK_CHAIN"] == "mine.hook"
    assert job_environment("abc", tmp_path, once) == once


def test_an_installed_package_does_not_come_before_the_standard_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_PACKAGE", tmp_path / "site-packages" / "rankscope")
    assert str(tmp_path / "site-packages") not in job_environment("abc", tmp_path, {})["PYTHONPATH"].split(os.pathsep)
