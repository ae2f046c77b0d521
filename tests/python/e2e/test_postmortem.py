"""Every way in which a process without torch or Ray dies: named, kept, and dying as it would have."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rankscope.dap.messages import DapError
from rankscope.postmortem import kept_run, listing
from support.dap_client import FakeEditor
from support.kept import Kept, job, kept, same_as_plain
from support.runs import cli, environment, line_of, python

FAILS = "fails.py"
HAS_GROUPS = sys.version_info >= (3, 11)

# how it dies → the finding's text, the mark of its line, the exit code of a driver that dies so
DEATHS = {
    "raise": ("ValueError: bad batch 7", "raise", 1),
    "chain": ("RuntimeError: step failed", "chain", 1),
    "coloured": ("ValueError: red", "", 1),
    "deep": ("ValueError: deep down", "deep", 1),
    "exit": ("exited with code 3", "exit", 3),
    "segv": ("killed by SIGSEGV", "segv", 128 + signal.SIGSEGV),
    "abort": ("killed by SIGABRT", "abort", 128 + signal.SIGABRT),
    "SIGTERM": ("killed by SIGTERM", "kill", 128 + signal.SIGTERM),
}


def dies(folder: Path, how: str, where: str = "driver") -> Kept:
    return kept(folder, *python(job(FAILS), how, where))


@pytest.mark.parametrize("how", DEATHS)
def test_the_driver_dies_as_it_would_have_and_is_kept(tmp_path: Path, how: str) -> None:
    text, mark, code = DEATHS[how]
    found = dies(tmp_path, how)
    assert (found.run.exit_code, found.first["text"], found.first["label"]) == (code, text, "driver fails.py")
    assert found.first["path"] == job(FAILS)
    if mark:
        assert found.first["line"] == line_of(FAILS, mark)
        assert found.frames("driver")[0].endswith(f":{line_of(FAILS, mark)}")
    assert found.followed == {}
    assert found.record.problems == []
    same_as_plain(found, tmp_path, *python(job(FAILS), how, "driver"))


@pytest.mark.parametrize("how", ["raise", "segv"])
def test_under_uv(tmp_path: Path, uv_run: tuple[str, ...], how: str) -> None:
    text, mark, _ = DEATHS[how]
    found = kept(tmp_path, *uv_run, "python", job(FAILS), how, "rank")
    assert (found.first["label"], found.first["text"]) == ("world 2", text)
    assert found.frames("world 2")[0].endswith(f":{line_of(FAILS, mark)}")
    if how == "raise":
        assert found.values("world 2")["loss"]


@pytest.mark.parametrize("how", ["raise", "exit", "segv", "SIGTERM"])
def test_a_rank_dies_and_where_its_launcher_was_is_kept(tmp_path: Path, how: str) -> None:
    text, mark, _ = DEATHS[how]
    found = dies(tmp_path, how, "rank")
    assert (found.first["label"], found.first["text"]) == ("world 2", text)
    assert found.frames("world 2")[0].endswith(f":{line_of(FAILS, mark)}")
    if how in ("raise", "exit"):  # after a signal its launcher is told as soon as the hub is
        assert found.frames("driver")[-1].startswith("<module>:")
    assert found.run.exit_code == 0
    told = [line["text"] for line in found.run.of("notice") if "first failure" in line["text"]]
    assert [text.startswith(f"first failure: world 2: {text}") or text for text in told] and len(told) == 1
    same_as_plain(found, tmp_path, *python(job(FAILS), how, "rank"))


@pytest.mark.parametrize("where", ["spawn", "fork"])
@pytest.mark.parametrize("how", ["raise", "exit"])
def test_a_child_of_multiprocessing_dies(tmp_path: Path, how: str, where: str) -> None:
    text, mark, _ = DEATHS[how]
    found = dies(tmp_path, how, where)
    assert found.first["label"].startswith("driver fails.py child")
    assert (found.first["text"], found.first["line"]) == (text, line_of(FAILS, mark))
    assert found.followed == {"driver": "exited with code 1"}
    assert found.run.exit_code == 1
    same_as_plain(found, tmp_path, *python(job(FAILS), how, where))


def test_locals_are_kept_and_no_code_of_theirs_runs(tmp_path: Path) -> None:
    values = dies(tmp_path, "raise").values("driver")
    assert (values["how"], values["loss"]) == ("'raise'", "3.5")
    assert values["batch"] == "<__main__.Batch>"


def test_the_chain_is_kept(tmp_path: Path) -> None:
    error = dies(tmp_path, "chain").dumps["driver"]["exception"]
    assert (error["type"], error["cause"]["type"]) == ("RuntimeError", "KeyError")


@pytest.mark.skipif(not HAS_GROUPS, reason="exception groups are of 3.11")
def test_an_exception_group_is_kept_with_its_members(tmp_path: Path) -> None:
    found = dies(tmp_path, "group")
    members = found.dumps["driver"]["exception"]["members"]
    assert [member["message"] for member in members] == ["first", "'second'"]
    same_as_plain(found, tmp_path, *python(job(FAILS), "group"))


def test_ten_thousand_frames_are_cut_at_both_ends(tmp_path: Path) -> None:
    dump = dies(tmp_path, "deep").dumps["driver"]
    assert len(dump["exception"]["frames"]) == 150
    assert dump["cut"]["frames"] > 9_000


def test_a_thread_fails_and_the_process_goes_on(tmp_path: Path) -> None:
    found = dies(tmp_path, "thread")
    assert (found.first["text"], found.first["how"]) == ("ValueError: bad batch 7", "uncaught in a thread")
    names = {thread["name"]: thread["isFailing"] for thread in found.dumps["driver"]["threads"]}
    assert names == {"MainThread": False, "loader": True}
    assert found.run.exit_code == 0
    same_as_plain(found, tmp_path, *python(job(FAILS), "thread"))


def test_an_exit_code_is_told_with_the_exception_that_led_to_it(tmp_path: Path) -> None:
    program = tmp_path / "careful.py"
    program.write_text(
        "import sys\ntry:\n    raise KeyError('x')\nexcept Exception:\n    print('sorry')\n    sys.exit(4)\n"
    )
    found = kept(tmp_path, *python(str(program)))
    assert (found.first["text"], found.first["line"], found.run.exit_code) == ("KeyError: 'x'", 3, 4)
    same_as_plain(found, tmp_path, *python(str(program)))


@pytest.mark.parametrize(
    "source",
    [
        "import sys\ntry:\n    sys.exit(4)\nexcept SystemExit:\n    pass\nsys.exit(0)\n",
        "import sys\ntry:\n    raise KeyError('x')\nexcept KeyError:\n    pass\n",
        "import sys\nsys.exit()\n",
        (
            "import faulthandler\nassert not faulthandler.is_enabled()\nfaulthandler.enable()\n"
            "assert faulthandler.is_enabled() and faulthandler.disable() and not faulthandler.disable()\n"
        ),
        "import signal\nassert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n",
    ],
)
def test_what_is_no_failure_is_none(tmp_path: Path, source: str) -> None:
    (tmp_path / "fine.py").write_text(source)
    found = kept(tmp_path, *python("fine.py"))
    assert (found.run.exit_code, found.record.findings, found.record.kept) == (0, [], [])


def test_the_programs_own_faulthandler_is_its_own(tmp_path: Path) -> None:
    program = tmp_path / "own.py"
    program.write_text("import ctypes, faulthandler\nfaulthandler.enable()\nctypes.string_at(0)\n")
    found = kept(tmp_path, *python(str(program)))
    assert "Fatal Python error: Segmentation fault" in found.run.errors
    assert f'File "{program}", line 3' in found.run.errors
    assert found.first["text"].startswith("killed by SIGSEGV")


def test_what_the_programs_own_faulthandler_writes_into_a_file_is_read(tmp_path: Path) -> None:
    program = tmp_path / "own.py"
    program.write_text(
        "import ctypes, faulthandler\nlog = open('own.log', 'w')\nprint('begins', file=log, flush=True)\n"
        "faulthandler.enable(log, all_threads=False)\nctypes.string_at(0)\n"
    )
    found = kept(tmp_path, *python(str(program)))
    assert (found.first["text"], found.first["line"]) == ("killed by SIGSEGV", 5)
    assert (tmp_path / "own.log").read_text().startswith("begins\nFatal Python error: Segmentation fault")


@pytest.mark.parametrize("where", ["driver", "rank"])
def test_killed_from_outside_it_is_kept_as_it_was_seen_last(tmp_path: Path, where: str) -> None:
    hold = tmp_path / "hold"
    argv = [*cli("--json"), "--", *python(job(FAILS), "SIGKILL", where)]
    started = time.monotonic()
    with subprocess.Popen(
        argv, cwd=tmp_path, env=environment(HOLD_FILE=str(hold)), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline().split()
        assert line[0] == b"READY"
        while time.monotonic() - started < 4:  # it is looked at a second after its start
            time.sleep(0.1)
        os.kill(int(line[1]), signal.SIGKILL)
        process.communicate(timeout=60)
    record = kept_run.open_run(listing.runs(tmp_path)[0].folder)
    [first] = [finding for finding in record.findings if finding["isFirst"]]
    assert first["text"].startswith("killed")
    assert "MB of memory)" in first["text"]
    assert (first["path"], first["line"]) == (job(FAILS), line_of(FAILS, "hang"))


def test_capture_adds_at_most_two_seconds_to_a_death(tmp_path: Path) -> None:
    """Five million entries, and values that block whoever looks at them."""
    program = tmp_path / "big.py"
    program.write_text(
        "import threading, time, sys\n"
        "class Odd:\n"
        "    @property\n"
        "    def slow(self): threading.Event().wait(60)\n"
        "    def __repr__(self): threading.Event().wait(60)\n"
        "own = sys.excepthook\n"
        "def hook(*a):\n"
        "    began = time.monotonic()\n"
        "    try: own(*a)\n"
        "    finally: print('RESULT', time.monotonic() - began, flush=True)\n"
        "def fail(table, odd):\n"
        "    odds = [Odd() for _ in range(1000)]\n"
        "    raise KeyError(len(odds))\n"
        "sys.excepthook = hook\n"
        "fail({number: str(number) for number in range(5_000_000)}, Odd())\n"
    )
    found = kept(tmp_path, *python(str(program)))
    [result] = found.run.results
    assert float(result.split()[1]) < 2.0
    assert found.dumps["driver"]["nodes"]
    sizes = [path.stat().st_size for path in (found.folder / kept_run.DUMPS).iterdir()]
    assert max(sizes) < 4 << 20


# --- what was kept, opened --------------------------------------------------------------------------


def test_p5_a_kept_run_opens_as_if_the_job_were_stopped_there(tmp_path: Path) -> None:
    folder = dies(tmp_path, "chain", "rank").folder

    async def work() -> None:
        async with FakeEditor() as editor:
            await editor._configure(editor.root, "attach", {"record": str(folder), "sessions": "single"})
            stop = await editor.wait_for_stop(accept=lambda stop: stop.reason == "exception")
            assert await stop.line() == line_of(FAILS, "chain")
            variables = await stop.local_variables()
            assert (variables["loss"], variables["batch"]) == ("3.5", "<__main__.Batch>")
            assert await stop.evaluate("batch.index") == "7"
            info = await stop.session.request("exceptionInfo", {"threadId": stop.thread})
            assert info["details"]["innerException"][0]["typeName"] == "KeyError"
            for command, asks in (("evaluate", {"expression": "len(how)"}), ("continue", {}), ("next", {})):
                frame = (await stop.stack())[0]["id"]
                with pytest.raises(DapError) as told:
                    await stop.session.request(command, {"threadId": stop.thread, "frameId": frame, **asks})
                assert "record" in str(told.value).lower()
            launcher = await editor.wait_for_stop(accept=lambda stop: stop.reason != "exception")
            assert (await launcher.stack())[-1]["name"] == "<module>"

    asyncio.run(asyncio.wait_for(work(), 60))
