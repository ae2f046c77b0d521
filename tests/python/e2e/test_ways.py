"""Ways into a job's processes that need a surrounding: restarts, forks, installed packages, links."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from support.dap_client import line_of as mark_in
from support.hub_session import Body, HubSession
from support.runs import (
    JOBS,
    at,
    environment,
    line_of,
    plain,
    point,
    program,
    python,
    same_but_stopped,
)

slow = pytest.mark.slow


# --- torchrun ----------------------------------------------------------------------------------------


@slow
@pytest.mark.torch
def test_a_torchrun_restart_is_a_new_incarnation_that_stops_again(tmp_path: Path) -> None:
    options = ("--standalone", "--nproc-per-node", "2", "--max-restarts", "1", "--monitor-interval", "0.1")
    command = (program("torchrun"), *options, "torchrun_restart.py")
    points = point("torchrun_restart.py", "work", "True  # @1")

    async def case() -> list[str]:
        added = environment(MARK_FILE=str(tmp_path / "mark"))
        job = await HubSession.launch(command, added, points, cwd=str(JOBS))
        try:
            incarnations = []
            for count in (1, 2):
                await job.until_stops(count)
                [stopped] = [member for member in await job.members() if member["stopped"]]
                assert stopped["label"] == "world 1"
                incarnations.append(stopped["incarnation"])
                await job.request("rankscope/control", action="continue", scope="stopped")
            await job.until(lambda: bool(job.of("terminated")))
            assert incarnations == [0, 1]
            assert job.of("exited")[0]["exitCode"] == 0
            last = {member["label"]: member["incarnation"] for member in await job.members()}
            assert last["world 0"] == last["world 1"] == 1
            return sorted(line for line in job.output.splitlines() if line.startswith("RESULT"))
        finally:
            await job.close()

    without = plain(*command, MARK_FILE=str(tmp_path / "plain"))
    assert without.exit_code == 0
    assert asyncio.run(case()) == without.results


# --- children and tools ------------------------------------------------------------------------------


def test_forked_children_of_an_armed_rank_stop_and_run_through() -> None:
    options = ["--break", at("forked_children.py", "square"), "--print", "number"]
    under = same_but_stopped(JOBS, options, *python("forked_children.py"), RANK="0", WORLD_SIZE="1")
    values = {stop["values"][0]["value"]: stop["rank"] for stop in under.of("stopped")}
    assert sorted(values) == ["2", "3", "4", "5"]
    assert values["2"] == "world 0"
    assert all(values[number].startswith("world 0 child ") for number in "345")


def test_tools_trackers_and_servers_are_no_members() -> None:
    async def case() -> None:
        points = point("tools.py", "end", "True  # @driver")
        job = await HubSession.launch(python("tools.py"), environment(), points, cwd=str(JOBS))
        try:
            await job.until_stops(1)
            roles = sorted(member["role"] for member in await job.members())
            assert roles == ["child", "child", "driver"], await job.members()
            await job.request("rankscope/control", action="continue", scope="stopped")
            await job.until(lambda: bool(job.of("terminated")))
            assert "RESULT [0, 1]" in job.output
        finally:
            await job.close()

    asyncio.run(case())


# --- files -------------------------------------------------------------------------------------------


def test_an_installed_package_binds_with_default_settings(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "tinypkg"
    package.mkdir(parents=True)
    source = package / "__init__.py"
    source.write_text("def double(number):\n    answer = 2 * number\n    return answer  # @bp double\n")
    inherited = environment()
    inherited["PYTHONPATH"] = os.pathsep.join([str(package.parent), inherited["PYTHONPATH"]])

    async def case() -> None:
        points: dict[str, list[Body]] = {str(source): [{"line": mark_in(source, "double")}]}
        job = await HubSession.launch(python("uses_package.py"), inherited, points, cwd=str(JOBS))
        try:
            [stop] = await job.until_stops(1)
            frame = await job.top_frame(stop["threadId"])
            assert (frame["source"]["path"], frame["line"]) == (str(source), mark_in(source, "double"))
            value = await job.request("evaluate", expression="answer", frameId=frame["id"], context="watch")
            assert value["result"] == "8"
            await job.request("rankscope/control", action="continue", scope="stopped")
            await job.until(lambda: bool(job.of("terminated")))
            assert job.output.splitlines() == ["RESULT 8"]
            assert job.of("exited")[0]["exitCode"] == 0
        finally:
            await job.close()

    asyncio.run(case())


@pytest.mark.parametrize(("started", "broken"), [("link", "link"), ("real", "link"), ("link", "real")], ids=str)
def test_a_symlinked_workspace(tmp_path: Path, started: str, broken: str) -> None:
    """The stop is reported in the file as the person named it, whichever way the program was started."""
    link = tmp_path / "work"
    link.symlink_to(JOBS)
    folders = {"link": link, "real": JOBS}
    own = folders[broken] / "plain_ranks.py"
    options = ["--break", f"{own}:{line_of('plain_ranks.py', 'step')}@1 if step == 1"]
    command = python(str(folders[started] / "plain_ranks.py"), "2")
    under = same_but_stopped(folders[started], options, *command)
    assert under.stops == ["world 1"]
    assert under.of("stopped")[0]["stack"][0]["file"] == str(own)
