"""Ways into a job's processes that need a surrounding: a running cluster, hooks of one's own, uv, restarts, links."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from support.dap_client import line_of as mark_in
from support.hub_session import Body, HubSession
from support.runs import JOBS, Run, at, environment, is_running, line_of, plain, program, python, run, until

slow = pytest.mark.slow
ON_CLUSTER = JOBS / "on_cluster"
DRIVER = "on_cluster/driver.py"
OWN = "on_cluster/own_runtime_env.py"

CLUSTER_MARK = "RANKSCOPE_TEST_CLUSTER"
"""Environment variable of all processes of the cluster, by which they are ended."""


# --- a Ray cluster that was running before -----------------------------------------------------------


@dataclass(frozen=True)
class Cluster:
    """``there`` is the environment of a driver on it, ``by_client`` that of a Ray Client."""

    folder: Path
    there: dict[str, str]
    by_client: dict[str, str]
    mark: str

    @property
    def processes(self) -> list[psutil.Process]:
        """All that belongs to it, its workers included."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(CLUSTER_MARK) == self.mark:
                    found.append(process)
        return found

    @property
    def daemons(self) -> dict[str, int]:
        """The pids of what a cluster cannot do without."""
        names = {process.name(): process.pid for process in self.processes}
        return {name: names[name] for name in ("gcs_server", "raylet")}

    def files_with(self, text: str) -> list[str]:
        """The files under the session's folder, logs included, in which a text stands."""
        found = []
        for path in self.folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                with contextlib.suppress(OSError):
                    if text.encode() in path.read_bytes():
                        found.append(str(path))
        return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One node on loopback, started as a person does, with Ray's token authentication and nothing of RankScope."""
    folder = Path(tempfile.mkdtemp(prefix="rs", dir="/tmp"))  # Ray's sockets want a short path
    port, client_port = free_ports(2)
    mark = secrets.token_hex(8)
    auth = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    made = Cluster(
        folder,
        {**auth, "RAY_ADDRESS": f"127.0.0.1:{port}"},
        {**auth, "RAY_ADDRESS": f"ray://127.0.0.1:{client_port}"},
        mark,
    )
    start = [
        *(program("ray"), "start", "--head", "--node-ip-address=127.0.0.1", f"--port={port}"),
        *(f"--ray-client-server-port={client_port}", "--include-dashboard=false", "--num-cpus=2"),
        *(f"--temp-dir={folder}", "--object-store-memory=100000000", "--disable-usage-stats"),
    ]
    clean = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    # Ray's client proxy forks among gRPC's threads, and now and then the child dies before its exec and the client
    # waits in vain (1 of 28 here, without RankScope); without gRPC's fork handlers that was not seen.
    clean["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    try:
        done = subprocess.run(
            start, env={**clean, **auth, CLUSTER_MARK: mark}, capture_output=True, text=True, timeout=90, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        yield made
    finally:
        started = made.processes
        for process in started:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(started, timeout=10)
        shutil.rmtree(folder, ignore_errors=True)


def free_ports(count: int) -> list[int]:
    """Ports that nobody has at the moment."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in held]
    for server in held:
        server.close()
    return ports


@contextlib.contextmanager
def neighbour(cluster: Cluster, folder: Path) -> Iterator[None]:
    """Another person's job on the cluster, without RankScope: it must go on to its own end."""
    hold = folder / "hold"
    with subprocess.Popen(
        python("driver.py"),
        cwd=ON_CLUSTER,
        env={**os.environ, **cluster.there, "HOLD_FILE": str(hold)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "RESULT [10, 11]\n"
            assert process.stdout.readline() == "READY\n"
            yield
            hold.touch()
            output, _ = process.communicate(timeout=30)
            assert output == "RESULT [20, 21]\nRESULT by uv: [False, False]\n"
            assert process.returncode == 0
        finally:
            process.kill()


def point(file: str, mark: str, condition: str) -> dict[str, list[Body]]:
    """One breakpoint, as a session takes it."""
    return {str(JOBS / file): [{"line": line_of(file, mark), "condition": condition}]}


def same_but_stopped(cwd: Path, options: list[str], *command: str, **added: str) -> Run:
    """Run plainly and under RankScope; the results must be the same."""
    under, without = run(options, *command, cwd=cwd, **added), plain(*command, cwd=cwd, **added)
    assert (under.exit_code, under.results) == (without.exit_code, without.results), under.errors
    assert without.results
    return under


def break_at(file: str, mark: str, rest: str = "") -> list[str]:
    """One breakpoint for the command line, by the file's whole path."""
    return ["--break", f"{JOBS / file}:{line_of(file, mark)}{rest}"]


@slow
@pytest.mark.ray
def test_on_a_running_cluster_one_rank_stops(cluster: Cluster, tmp_path: Path) -> None:
    daemons = cluster.daemons
    with neighbour(cluster, tmp_path):
        under = same_but_stopped(
            ON_CLUSTER,
            [*break_at(DRIVER, "step", "@1"), "--print", "value"],
            *python("driver.py", "auto"),
            **cluster.there,
        )
    assert under.stops == ["Trainer 1"]
    assert [stop["values"][0]["value"] for stop in under.of("stopped")] == ["11"]
    assert under.of("stopped")[0]["stack"][0]["file"] == str(JOBS / DRIVER)
    assert cluster.daemons == daemons


@slow
@pytest.mark.ray
@pytest.mark.parametrize("way", ["stop", "kill"])
def test_on_a_running_cluster_this_job_alone_is_ended(cluster: Cluster, tmp_path: Path, way: str) -> None:
    """By Stop, or because its driver was killed, in the middle and with a rank paused."""

    async def case() -> None:
        points = point(DRIVER, "step", "True  # @1")
        job = await HubSession.launch(python("driver.py"), environment(**cluster.there), points, cwd=str(ON_CLUSTER))
        try:
            await job.until_stops(1)
            pids = {member["pid"]: member["role"] for member in await job.members() if member["role"] != "idle"}
            assert sorted(pids.values()) == ["driver", "rank", "rank"]
            if way == "stop":
                await job.request("terminate")
            else:
                psutil.Process(next(pid for pid, role in pids.items() if role == "driver")).kill()
            await job.until(lambda: bool(job.of("terminated")), seconds=15)
            until(lambda: not any(is_running(pid) for pid in pids), "driver and ranks have ended", 5)
        finally:
            await job.close()

    daemons = cluster.daemons
    with neighbour(cluster, tmp_path):
        asyncio.run(case())
    assert cluster.daemons == daemons


@slow
@pytest.mark.ray
@pytest.mark.parametrize("kind", ["function", "name"])
def test_runtime_env_and_hooks_of_ones_own_are_kept(cluster: Cluster, kind: str) -> None:
    under = same_but_stopped(
        ON_CLUSTER,
        break_at(OWN, "look", "@1"),
        *python("own_runtime_env.py", kind),
        **cluster.there,
        RAY_RUNTIME_ENV_HOOK="hooks.runtime_env_hook",
    )
    assert under.stops == ["Worker 1"]
    seen = {"MINE": "kept", "FROM_OWN_HOOK": "yes", "FROM_OWN_SETUP": "yes", "copied": True}
    assert under.results == ["RESULT done", f"RESULT {seen}", f"RESULT {seen}"]


@slow
@pytest.mark.ray
@pytest.mark.parametrize("way", ["there", "by_client"])
def test_the_secret_stands_in_no_log_argv_or_environment(cluster: Cluster, way: str) -> None:
    """Read in a rank that stands still: while it does, and after the job."""
    read_secret = "__import__('json').load(open(__import__('os').environ['RANKSCOPE_JOB_FILE']))['secret']"

    async def case() -> tuple[str, str]:
        command, there = python("own_runtime_env.py", "name"), environment(**getattr(cluster, way))
        job = await HubSession.launch(command, there, point(OWN, "look", "True  # @1"), cwd=str(ON_CLUSTER))
        try:
            [stop] = await job.until_stops(1)
            frame = await job.top_frame(stop["threadId"])
            value = await job.request("evaluate", expression=read_secret, frameId=frame["id"], context="watch")
            secret = str(value["result"]).strip("'\"")
            assert len(secret) >= 32
            roles = [member["role"] for member in await job.members()]
            assert (roles.count("driver"), roles.count("rank")) == (1, 2)
            assert set(roles) <= {"driver", "rank", "idle"}
            members = {member["pid"] for member in await job.members() if member["state"] != "exited"}
            of_cluster = {process.pid for process in cluster.processes}
            assert len(members & of_cluster) >= 2
            for pid in members | of_cluster:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process = psutil.Process(pid)
                    assert not any(secret in text for text in (*process.cmdline(), *process.environ().values()))
            assert cluster.files_with(secret) == []
            job_id = psutil.Process(stop_pid(stop, await job.members())).environ()["RANKSCOPE_JOB"]
            await job.request("rankscope/control", action="continue", scope="stopped")
            await job.until(lambda: bool(job.of("terminated")))
            return secret, job_id
        finally:
            await job.close()

    secret, job_id = asyncio.run(case())
    assert cluster.files_with(secret) == []
    assert cluster.files_with(job_id), "this job's runtime_env stands in Ray's logs, so a secret in it would"


def stop_pid(stop: Body, members: list[Body]) -> int:
    """The process of a stop."""
    return next(int(member["pid"]) for member in members if stop["threadId"] in member["threadIds"])


@pytest.fixture(scope="module")
def uv(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The ``uv`` program, from PATH or installed beside the test."""
    found = shutil.which("uv")
    if found is None:
        folder = tmp_path_factory.mktemp("uv")
        install = python("-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), "uv")
        done = subprocess.run(install, capture_output=True, text=True, timeout=60, check=False)
        found = shutil.which("uv", path=str(folder / "bin"))
        if found is None:
            pytest.skip(f"uv cannot be installed: {done.stderr.strip()[-200:]}")
    return found


@slow
@pytest.mark.ray
def test_uv_run_where_ray_ignores_the_hook_variable(cluster: Cluster, uv: str) -> None:
    command = (uv, "run", "--offline", "--no-project", "--python", sys.executable, "python", "driver.py")
    folder = os.pathsep.join([str(Path(uv).parent), os.environ["PATH"]])
    under = same_but_stopped(ON_CLUSTER, break_at(DRIVER, "step", "@1"), *command, **cluster.there, PATH=folder)
    assert under.stops == ["Trainer 1"]
    assert under.of("stopped")[0]["stack"][0]["file"] == str(JOBS / DRIVER)
    assert "RESULT by uv: [True, True]" in under.results  # Ray's own hook was called


@slow
@pytest.mark.ray
def test_ray_client(cluster: Cluster) -> None:
    under = same_but_stopped(ON_CLUSTER, break_at(DRIVER, "step", "@1"), *python("driver.py"), **cluster.by_client)
    assert under.stops == ["Trainer 1"]


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
