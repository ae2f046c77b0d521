"""Stacks and paths, as the agent's thread answers them."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from rankscope.agent import stacks


def test_stacks_show_threads_with_the_main_one_first() -> None:
    is_there, may_end = threading.Event(), threading.Event()

    def waits() -> None:
        is_there.set()
        may_end.wait(10)

    thread = threading.Thread(target=waits, name="other")
    thread.start()
    is_there.wait(10)
    try:
        answer = stacks.stacks({})
    finally:
        may_end.set()
        thread.join()
    first = answer["threads"][0]
    assert first["is_main"]
    here = next(frame for frame in first["frames"] if frame["path"] == __file__)
    assert here["name"] == test_stacks_show_threads_with_the_main_one_first.__name__
    other = next(x for x in answer["threads"] if x["thread"] == "other")
    assert "waits" in [frame["name"] for frame in other["frames"]]


def test_a_hidden_thread_is_left_out() -> None:
    is_there, may_end = threading.Event(), threading.Event()

    def waits() -> None:
        is_there.set()
        may_end.wait(10)

    thread = threading.Thread(target=waits, name="hidden")
    thread.is_pydev_daemon_thread = True  # type: ignore[attr-defined]
    thread.start()
    is_there.wait(10)
    try:
        assert "hidden" not in [x["thread"] for x in stacks.stacks({})["threads"]]
    finally:
        may_end.set()
        thread.join()


def test_rays_copy_comes_before_the_file_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, copy = tmp_path / "ws", tmp_path / "working_dir_files" / "_ray_pkg_12"
    for folder in (workspace, copy):
        folder.mkdir(parents=True)
        (folder / "train.py").write_text("")
    link = tmp_path / "link"
    link.symlink_to(workspace)
    monkeypatch.setattr(sys, "path", ["", str(copy)])
    monkeypatch.chdir(workspace)
    asked = {"paths": [{"path": str(link / "train.py"), "rel": "train.py"}, {"path": "/absent/x.py", "rel": "x.py"}]}
    assert stacks.paths(asked)["found"] == {
        str(link / "train.py"): [str(copy / "train.py"), str(workspace / "train.py")],
        "/absent/x.py": [],
    }
