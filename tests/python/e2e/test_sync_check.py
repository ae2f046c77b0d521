"""``syncCheck`` of launch.json: real gloo ranks of an unchanged program, and a check in a program under the hub."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from rankscope.lsp.records import newest_run
from support.hub_session import Body, HubSession
from support.runs import JOBS, environment, line_of, python

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.timeout(240)]

JOB = "diverges.py"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


def ran(folder: Path, ranks: int = 2, *, check: Any = None, **added: str) -> tuple[list[Body], str]:
    """The findings of a run, each in its last state, and all that was said."""

    async def whole() -> tuple[list[Body], str]:
        session = await HubSession.launch(
            python(str(JOBS / JOB), str(ranks)),
            environment(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), OMP_NUM_THREADS="1", **added),
            cwd=str(folder),
            __extension={"version": "test"},
            **({"syncCheck": check} if check is not None else {}),
        )
        try:
            await session.until(lambda: bool(session.of("terminated")), 150)
            found = {body["id"]: body for body in session.of("rankscope/finding")}
            return list(found.values()), "".join(body["output"] for body in session.of("output"))
        finally:
            await session.close()

    return asyncio.run(asyncio.wait_for(whole(), 220))


def test_a_flipped_bit_is_found_within_the_interval_and_bisected_in_the_next_run(tmp_path: Path) -> None:
    [finding], said = ran(tmp_path, check={"interval": 5}, DIVERGES_AT="8")
    assert "RESULT rank 0 12" in said and "RESULT rank 1 12" in said
    assert finding["kind"] == "divergence" and finding["severity"] == "error"
    assert (finding["path"], finding["line"]) == (str(JOBS / JOB), line_of(JOB, "step"))
    details = finding["details"]
    assert (details["tensor"], details["first"]) == ("0.weight", [1, 2])
    assert (details["lastGood"], details["firstBad"]) == (5, 10)
    assert finding["ranks"] == "1" and details["places"][0]["line"] == line_of(JOB, "step")
    run = newest_run(tmp_path)
    assert run is not None and run.findings[-1]["details"]["tensor"] == "0.weight"
    [finding], _ = ran(tmp_path, check={"interval": 5, "bisect": True}, DIVERGES_AT="8")
    assert (finding["details"]["lastGood"], finding["details"]["firstBad"]) == (7, 8)
    assert finding["details"]["count"] == 3 and finding["text"].endswith("since step 8 (at 3 checks)")
    # What a person ignores is found no more.
    (tmp_path / ".rankscope" / "hidden.json").write_text(json.dumps({"tensors": ["0.weight"]}))
    findings, _ = ran(tmp_path, check={"interval": 5}, DIVERGES_AT="8")
    assert findings == []


def test_a_missed_broadcast_is_found_at_the_first_step(tmp_path: Path) -> None:
    [finding], _ = ran(tmp_path, 4, check=True, DIVERGES_BY="broadcast")
    assert finding["details"]["tensor"] == "2.bias" and finding["ranks"] == "1"
    assert (finding["details"]["lastGood"], finding["details"]["firstBad"]) == (0, 1)
    assert "rank 1 against ranks 0,2,3" in finding["text"]


def test_a_rank_that_does_not_step_is_named_and_the_job_goes_on(tmp_path: Path) -> None:
    check = {"interval": 5, "timeout": 2.0}
    findings, said = ran(tmp_path, check=check, DIVERGES_AT="7", DIVERGES_BY="leaves")
    assert not [finding for finding in findings if finding["kind"] == "divergence"]
    assert "the sync check of AdamW ends: Rank 1 has not called" in said
    assert "RESULT rank 0 12" in said and "RESULT rank 1 12" in said


def test_a_healthy_job_gives_no_finding(tmp_path: Path) -> None:
    assert ran(tmp_path, check={"interval": 3, "batches": "different"})[0] == []


def test_ranks_that_read_the_same_against_intent(tmp_path: Path) -> None:
    [finding], _ = ran(tmp_path, check={"interval": 3, "batches": "different"}, DIVERGES_BY="sampler")
    assert finding["details"]["tensor"] == "batch" and finding["ranks"] == "0,1"
    assert "the same batch is read by ranks 0,1" in finding["text"]


def test_a_check_in_the_program_stops_the_deviating_ranks_in_the_editor(tmp_path: Path) -> None:
    async def whole() -> None:
        session = await HubSession.launch(
            python(str(JOBS / "verifies.py"), "4"),
            environment(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), OMP_NUM_THREADS="1"),
            cwd=str(tmp_path),
            __extension={"version": "test"},
        )
        try:
            [stop] = await session.until_stops(1)
            frame = await session.top_frame(stop["threadId"])
            # Like `breakpoint()`: at the line that comes next.
            assert frame["name"] == "main" and frame["line"] == line_of("verifies.py", "check") + 1
            members = await session.members()
            assert [member["label"] for member in members if member["state"] == "paused"] == ["spawn 2"]
            [finding] = session.of("rankscope/finding")
            assert (finding["line"], finding["ranks"]) == (line_of("verifies.py", "check"), "2")
            assert finding["message"] == "after the seed"
            await session.request("continue", threadId=stop["threadId"])
            await session.until(lambda: bool(session.of("terminated")))
            assert session.output.count("RESULT") == 4
        finally:
            await session.close()

    asyncio.run(asyncio.wait_for(whole(), 150))
