"""Rank 2 of four fails under torchrun, and the other torch ways: the first failure, and where its peers were."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankscope.postmortem import kept_run
from support.kept import Kept, job, kept
from support.runs import line_of, program, python

pytestmark = [pytest.mark.torch, pytest.mark.slow]

FAILS = "fails_torch.py"
PEERS = ("world 0", "world 1", "world 3")


def torchrun(folder: Path, how: str) -> Kept:
    return kept(folder, program("torchrun"), "--standalone", "--nproc-per-node", "4", job(FAILS), FAILS_BY=how)


def test_the_rank_that_failed_is_first_and_its_peers_are_kept_in_their_all_reduce(tmp_path: Path) -> None:
    found = torchrun(tmp_path, "raise")
    assert (found.first["label"], found.first["text"]) == ("world 2", "ValueError: bad step 2 1.0")
    assert found.first["line"] == line_of(FAILS, "raise")
    assert found.values("world 2") == {"how": "'raise'", "step": "2", "loss": "1.0"}
    for peer in PEERS:
        assert found.frames(peer)[0] == f"train:{line_of(FAILS, 'all_reduce')}"
        assert found.values(peer)["step"] == "2"
        assert found.values(peer)["gradient"].startswith("Tensor 4 float32 cpu")
        names = [frame["name"] for frame in found.dumps[peer]["frames"]]
        assert "all_reduce" in [name.rpartition(".")[2] for name in names]
    assert set(found.followed) <= {*PEERS, "driver"}
    assert found.followed["driver"].endswith(f"ChildFailedError: {job(FAILS)} FAILED")
    assert found.run.exit_code == 1
    assert found.record.kept[0].about["label"] == "world 2"


@pytest.mark.parametrize(
    ("how", "text"), [("exit", "exited with code 3"), ("segv", "killed by SIGSEGV"), ("SIGKILL", "killed")]
)
def test_however_it_dies_the_peers_broken_connections_follow(tmp_path: Path, how: str, text: str) -> None:
    found = torchrun(tmp_path, how)
    assert found.first["label"] == "world 2"
    assert found.first["text"].startswith(text)
    assert "driver" in found.followed
    if how == "SIGKILL":
        assert found.first["text"].startswith(("killed by SIGKILL", "killed or ended without a word"))


def test_a_spawned_rank_fails_with_what_torch_carries_to_the_driver(tmp_path: Path) -> None:
    found = kept(tmp_path, *python(job(FAILS), "spawn"))
    assert (found.first["label"], found.first["text"]) == ("spawn 1", "ValueError: bad step 5 2.5")
    assert found.first["line"] == line_of(FAILS, "raise")
    assert "ProcessRaisedException" in found.followed["driver"]


def test_a_loaders_worker_fails_and_its_parent_with_it(tmp_path: Path) -> None:
    found = kept(tmp_path, *python(job(FAILS), "loader"))
    assert found.first["label"].startswith("driver fails_torch.py child")
    assert (found.first["text"], found.first["line"]) == ("ValueError: bad step 5 2.5", line_of(FAILS, "raise"))
    assert found.followed["driver"].startswith("ValueError: Caught ValueError in DataLoader worker")


def test_two_gigabytes_of_tensors_and_five_million_entries_are_kept_in_four_megabytes(tmp_path: Path) -> None:
    found = kept(tmp_path, *python(job(FAILS), "big"))
    [file] = (found.folder / kept_run.DUMPS).iterdir()
    assert file.stat().st_size < 4 << 20
    dump = found.dumps["driver"]
    texts = [node["text"] for node in dump["nodes"]]
    assert "dict of 5,000,000" in texts
    assert any(text.startswith("Tensor 268435456 float32 cpu") for text in texts)
