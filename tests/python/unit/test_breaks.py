"""Breakpoints that stand in the code, and a program's own debugpy."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rankscope.agent import breaks
from rankscope.errors import RankSetError
from support.fake_hub import FakeHub


def _best(work: Callable[[], object]) -> float:
    """CPU seconds of the fastest of five rounds."""
    rounds = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(20_000):
            work()
        rounds.append(time.process_time() - start)
    return min(rounds)


def test_a_false_condition_costs_little_more_than_a_call() -> None:
    """A call takes some 50 ns, so this is well below a microsecond."""

    def nothing(condition: bool = True, rank_filter: object = None) -> None:
        del condition, rank_filter

    ours = _best(lambda: breaks.conditional_breakpoint(False))
    assert ours < 8 * _best(lambda: nothing(False))


def test_without_a_hub_it_says_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    breaks._said.clear()
    breaks.conditional_breakpoint()
    breaks.conditional_breakpoint()
    assert capsys.readouterr().err.count("no RankScope session") == 1


def test_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    stops: list[str] = []
    monkeypatch.setattr(breaks, "stop", lambda _frame, why: stops.append(why))
    monkeypatch.setenv("RANK", "2")

    def stopped(**arguments: object) -> bool:
        stops.clear()
        breaks.conditional_breakpoint(**arguments)  # type: ignore[arg-type]
        return bool(stops)

    assert stopped(condition=lambda: 1)
    assert not stopped(condition=lambda: 0)
    assert stopped(rank_filter=2)
    assert not stopped(rank_filter=1)
    assert stopped(rank_filter=[0, 2])
    assert stopped(rank_filter="0,2-3")
    assert not stopped(rank_filter="0-31:4")
    assert stopped(rank_filter=lambda rank: rank % 2 == 0)
    with pytest.raises(RankSetError):
        stopped(rank_filter="0,,")
    monkeypatch.setenv("VERL_DEBUG", "0")
    assert not stopped()


def test_stops_in_the_callers_frame_and_leaves_own_debugpy_out(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "import debugpy\n"
        "host, port = debugpy.listen(('127.0.0.1', 5678))\n"
        "debugpy.wait_for_client()\n"
        "from rankscope.agent.breaks import conditional_breakpoint\n"
        "def step(loss):\n"
        "    breakpoint()  # first\n"
        "    conditional_breakpoint(loss > 1)  # second\n"
        "    debugpy.breakpoint()  # third\n"
        "    return loss\n"
        "print('RESULT', port, step(2))\n"
    )
    with FakeHub(tmp_path) as hub, hub.job(str(script)) as job:
        driver = hub.member(lambda x: x.facts.role == "driver")
        lines = [driver.go_on() for _ in range(3)]
        # The stop is shown on the line of the call or, from Python 3.12 on, the one after it.
        assert [frame["name"] for frame in lines] == ["step"] * 3
        assert [frame["source"]["path"] for frame in lines] == [str(script)] * 3
        out, _ = job.communicate(timeout=30)
        assert "RESULT 5678 2" in out, out
        assert job.returncode == 0


def test_a_hub_that_is_gone_blocks_nobody(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("breakpoint()\nprint('RESULT')\n")
    with FakeHub(tmp_path, start_wait=1.0, release_after=1.0) as hub:
        env = hub.environment()
    out = subprocess.run(
        [sys.executable, str(tmp_path / "job.py")], env=env, capture_output=True, text=True, timeout=20, check=False
    )
    assert out.stdout == "RESULT\n"
    assert out.returncode == 0


def test_pythonbreakpoint_0_is_respected(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("breakpoint()\nprint('RESULT')\n")
    with FakeHub(tmp_path) as hub, hub.job(str(tmp_path / "job.py"), PYTHONBREAKPOINT="0") as job:
        assert job.communicate(timeout=20)[0] == "RESULT\n"


@pytest.mark.parametrize("method", ["spawn", "fork", "fork-loaded", "forkserver"])
def test_children_arm_when_a_watched_file_runs_in_them(tmp_path: Path, method: str) -> None:
    (tmp_path / "work.py").write_text("def work(n):\n    value = n + 1\n    return value\n")
    script = tmp_path / "job.py"
    script.write_text(
        "import multiprocessing as mp, sys\n"
        "def run(n):\n"
        "    from work import work\n"
        "    sys.exit(work(n))\n"
        "if __name__ == '__main__':\n"
        "    if sys.argv[1] == 'fork-loaded': import work\n"
        "    p = mp.get_context(sys.argv[1].partition('-')[0]).Process(target=run, args=(6,))\n"
        "    p.start(); p.join(); print('RESULT', p.exitcode)\n"
    )
    with FakeHub(tmp_path, {str(tmp_path / "work.py"): [3]}) as hub, hub.job(str(script), method) as job:
        child = hub.member(lambda x: x.facts.role == "child")
        frame = child.go_on()
        assert (frame["name"], frame["line"]) == ("work", 3)
        out, _ = job.communicate(timeout=30)
        assert out.endswith("RESULT 7\n"), out
