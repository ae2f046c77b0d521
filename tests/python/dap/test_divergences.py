"""Divergences as an editor hears of them, and what of them a later run is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from rankscope.hub.divergences import for_job, left_open
from rankscope.hub.settings import SyncSettings
from rankscope.journal import Journal
from rankscope.lsp.records import newest_run
from rankscope.postmortem.kept_run import FINDINGS
from rankscope.record import RUNS, ignored_tensors
from rankscope.wire.messages import Diverged
from support.dap_client import Session
from support.fake_ranks import FakeHub, FakeMember

pytestmark = pytest.mark.core


def about(tensor: str = "fc.weight", step: int = 200, good: int = 100, ranks: tuple[int, ...] = (2,)) -> dict[str, Any]:
    """What a group's first rank tells."""
    return {
        "path": "/code/train.py",
        "line": 33,
        "name": "train",
        "text": f"'{tensor}' differs",
        "message": "AdamW",
        "at": 5.0,
        "ranks": list(ranks),
        "places": [{"rank": rank, "path": "/code/train.py", "line": 33} for rank in ranks],
        "details": {"tensor": tensor, "step": step, "lastGood": good, "firstBad": 200},
    }


def with_ranks(work: Callable[[FakeHub, Session, list[FakeMember]], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        async with FakeHub() as hub:
            session = await hub.root_session(__extension={"version": "test"})
            await work(hub, session, [await hub.fleet.join_rank(rank) for rank in range(4)])

    asyncio.run(asyncio.wait_for(whole(), 30))


def test_a_tensor_is_one_finding_over_all_steps() -> None:
    async def work(hub: FakeHub, session: Session, ranks: list[FakeMember]) -> None:
        tell = hub.fleet.findings.divergences.handle
        tell(ranks[0], Diverged(about()).about)  # type: ignore[arg-type]
        first = await session.wait_for("rankscope/finding")
        assert (first["kind"], first["severity"], first["line"]) == ("divergence", "error", 33)
        assert (first["member"], first["label"], first["ranks"]) == (ranks[2].id, ranks[2].label, "2")
        assert first["details"]["places"] == [
            {"label": ranks[2].label, "path": "/code/train.py", "line": 33, "text": "deviates"}
        ]
        tell(ranks[0], about(step=300, ranks=(1, 2)))  # type: ignore[arg-type]
        again = await session.wait_for("rankscope/finding", lambda body: body["details"]["count"] == 2)
        assert again["id"] == first["id"]
        assert again["text"] == "'fc.weight' differs (at 2 checks)" and again["ranks"] == "1,2"
        tell(ranks[0], about("rng.torch"))  # type: ignore[arg-type]
        other = await session.wait_for("rankscope/finding", lambda body: body["id"] != first["id"])
        assert other["severity"] == "warning"

    with_ranks(work)


def test_a_rank_that_the_hub_does_not_know() -> None:
    async def work(hub: FakeHub, session: Session, ranks: list[FakeMember]) -> None:
        hub.fleet.findings.divergences.handle(ranks[0], about(ranks=(9,)))  # type: ignore[arg-type]
        found = await session.wait_for("rankscope/finding")
        assert (found["member"], found["ranks"]) == (ranks[0].id, "")
        assert found["details"]["places"][0]["label"] == "rank 9"

    with_ranks(work)


# --- what a job is told -------------------------------------------------------------------------------------------


def kept(base: Path, run: str, *findings: dict[str, Any]) -> None:
    folder = base / RUNS / run
    folder.mkdir(parents=True)
    journal = Journal(folder / FINDINGS, "findings")
    for number, finding in enumerate(findings):
        assert journal.append({"id": f"divergence-{number}", "kind": "divergence", **finding})


def test_the_window_that_the_last_divergence_left_open(tmp_path: Path) -> None:
    assert left_open(tmp_path) is None
    kept(tmp_path, "1", {"details": {"lastGood": 5, "firstBad": 9}})
    kept(
        tmp_path,
        "2",
        {"details": {"lastGood": 0, "firstBad": 1}},
        {"details": {"lastGood": 100, "firstBad": 200}},
        {"details": {"lastGood": 300, "firstBad": 400}},
        {"details": {"lastGood": "x"}},
        {"kind": "crash"},
    )
    kept(tmp_path, "3", {"kind": "crash"})
    assert left_open(tmp_path) == [100, 200]
    told = for_job(SyncSettings(bisect=True), tmp_path)
    assert told["bisect"] == [100, 200] and told["isOn"]
    kept(tmp_path, "4", {"details": {"lastGood": 136, "firstBad": 137}})
    assert left_open(tmp_path) is None


def test_ignored_tensors_are_told_with_and_without_the_check(tmp_path: Path) -> None:
    assert for_job(None, tmp_path) == {}
    (tmp_path / RUNS).mkdir(parents=True)
    hidden = tmp_path / ".rankscope" / "hidden.json"
    hidden.write_text(json.dumps({"tensors": ["bn.mean", 5], "run": "x"}))
    assert for_job(None, tmp_path) == {"ignored": ["bn.mean"]}
    assert for_job(SyncSettings(interval=7), tmp_path)["interval"] == 7
    assert ignored_tensors(tmp_path) == ("bn.mean",)
    for text in ("[]", "{", '{"tensors": 5}'):
        hidden.write_text(text)
        assert for_job(None, tmp_path) == {} and ignored_tensors(tmp_path) == ()


def test_a_divergence_is_what_the_language_server_reads(tmp_path: Path) -> None:
    kept(tmp_path, "1", {"at": 1.0, "ranks": "2", "details": {"tensor": "w"}, "text": "'w' differs"})
    run = newest_run(tmp_path)
    assert run is not None
    [finding] = run.findings
    assert (finding["kind"], finding["details"]["tensor"]) == ("divergence", "w")
