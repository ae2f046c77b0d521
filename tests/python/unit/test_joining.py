"""Processes join as what they are: driver, rank, child; tools do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.fake_hub import SITE, FakeHub


def _is_member(argv: list[str]) -> bool:
    namespace: dict[str, object] = {"__file__": str(SITE / "sitecustomize.py"), "__name__": "tried"}
    source = (SITE / "sitecustomize.py").read_text().partition("\ntry:\n    _run_hidden()")[0]
    exec(compile(source, "sitecustomize.py", "exec"), namespace)
    answer: bool = namespace["is_member"](argv)  # type: ignore[operator]
    return answer


@pytest.mark.parametrize(
    "line",
    [
        "python train.py",
        "python -u -X dev train.py --c",
        "python -m train",
        "python -m torch.distributed.run train.py",
        "/usr/bin/torchrun x.py",
        "python /bin/torchrun --nproc-per-node 4 train.py",
        "python /bin/accelerate launch x.py",
    ],
)
def test_programs_are_members(line: str) -> None:
    assert _is_member(line.split(" ")) or line.startswith("/usr/bin/torchrun")


def test_spawned_children_are_members() -> None:
    code = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)"
    assert _is_member(["python", "-c", code, "--multiprocessing-fork"])


@pytest.mark.parametrize(
    "argv",
    [
        ["python"],
        ["python", "-c", "print(1)"],
        ["python", "-c", "from multiprocessing.resource_tracker import main;main(4)"],
        ["python", "-c", "from multiprocessing.forkserver import main; main(4)"],
        ["python", "-m", "pip", "install", "x"],
        ["python", "-m", "rankscope.hub"],
        ["python", "/venv/bin/pip", "install", "x"],
        ["python", "-u", "/venv/site-packages/ray/_private/workers/default_worker.py"],
        ["python", "-u", "/venv/site-packages/ray/dashboard/agent.py"],
        ["python", "/venv/site-packages/torch/_inductor/compile_worker/__main__.py"],
        ["python", "/venv/site-packages/debugpy/adapter"],
    ],
)
def test_tools_are_not(argv: list[str]) -> None:
    assert not _is_member(argv)


def test_deciding_costs_less_than_importing_a_small_module(tmp_path: Path) -> None:
    """`textwrap` and its `re` take some milliseconds; what every Python process pays for us is a small part of it."""
    program = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); import importlib\n"
        "best = 1.0\n"
        "for _ in range(5):\n"
        "    sys.modules.pop('sitecustomize', None); t = time.perf_counter(); import sitecustomize\n"
        "    best = min(best, time.perf_counter() - t)\n"
        "t = time.perf_counter(); import textwrap\n"
        "print(best / (time.perf_counter() - t))"
    )
    env = {"PYTHONPYCACHEPREFIX": str(tmp_path)}  # a program writes its bytecode once
    out = subprocess.run(
        [sys.executable, "-S", "-c", program, str(SITE)], env=env, capture_output=True, text=True, check=True
    )
    assert float(out.stdout) < 1


def test_driver_then_spawned_and_forked_children(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "import multiprocessing as mp, sys\n"
        "def work(q): q.get()\n"
        "if __name__ == '__main__':\n"
        "    ps = []\n"
        "    for method in ('fork', 'spawn', 'forkserver'):\n"
        "        c = mp.get_context(method); q = c.Queue()\n"
        "        p = c.Process(target=work, args=(q,)); p.start(); ps.append((p, q))\n"
        "    input()\n"
        "    for p, q in ps: q.put(1); p.join()\n"
        "    print('RESULT', [p.exitcode for p, _ in ps])\n"
    )
    with (
        FakeHub(tmp_path) as hub,
        subprocess.Popen(
            [sys.executable, str(script)],
            env=hub.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as job,
    ):
        driver = hub.member(lambda x: x.facts.role == "driver")
        assert (driver.hello.name, driver.hello.pid) == ("job.py", job.pid)
        hub.wait(lambda: len(hub.members) == 4)
        children = [x for x in hub.members if x is not driver]
        assert {x.facts.role for x in children} == {"child"}
        assert all(x.hello.parent == driver.hello.member for x in children)
        assert not any(x.hello.waits for x in children)
        out, _ = job.communicate("\n")
        assert out == "RESULT [0, 0, 0]\n"
        hub.wait(lambda: all(x.has_ended for x in hub.members))
        assert all(any(type(y).__name__ == "Leaving" for y in x.messages) for x in hub.members)


def test_ranks_of_a_launcher(tmp_path: Path) -> None:
    script = tmp_path / "launch.py"
    script.write_text(
        "import os, subprocess, sys\n"
        "code = 'import subprocess, sys; subprocess.run([sys.executable, sys.argv[1]])'\n"
        "open(sys.argv[1] + '/rank.py', 'w').write(code)\n"
        "open(sys.argv[1] + '/leaf.py', 'w').write('pass')\n"
        "for r in '01':\n"
        "    env = dict(os.environ, RANK=r, WORLD_SIZE='2', LOCAL_RANK=r)\n"
        "    argv = [sys.executable, sys.argv[1] + '/rank.py', sys.argv[1] + '/leaf.py']\n"
        "    subprocess.run(argv, env=env, check=True)\n"
    )
    with FakeHub(tmp_path) as hub, hub.job(str(script), str(tmp_path)) as job:
        assert job.wait(30) == 0
        hub.wait(lambda: len(hub.members) == 5)
        seen = [(x.hello.name, x.facts.role, x.facts.group, x.facts.rank) for x in hub.members]
        assert seen == [
            ("launch.py", "driver", "", None),
            ("rank.py", "rank", "world", 0),
            ("leaf.py", "child", "world", 0),
            ("rank.py", "rank", "world", 1),
            ("leaf.py", "child", "world", 1),
        ]
        assert all(x.facts.is_final for x in hub.members[1:])


def test_a_hidden_sitecustomize_still_runs_and_ours_stays_silent(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('theirs')")
    (tmp_path / "job.py").write_text("print('user')")
    with FakeHub(tmp_path) as hub:
        env = hub.environment()
        env["PYTHONPATH"] += f":{tmp_path}"
        env["RANKSCOPE_JOB_FILE"] = str(tmp_path / "absent.json")
        out = subprocess.run(
            [sys.executable, str(tmp_path / "job.py")], env=env, capture_output=True, text=True, check=False
        )
        assert (out.stdout, out.stderr, out.returncode) == ("theirs\nuser\n", "", 0)
        assert hub.members == []
