"""``rankscope run`` on jobs without torch or Ray: the core path, on every supported Python."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from support.runs import JOBS, at, cli, environment, line_of, plain, python, run

JOB = python("plain_ranks.py")


def test_one_rank_stops_and_nothing_else_changes() -> None:
    under = run(["--break", at("plain_ranks.py", "step", "@2"), "--print", "loss", "--print", "label"], *JOB)
    assert under.stops == ["world 2", "world 2"]
    stop = under.of("stopped")[0]
    assert stop["values"][0] == {"expression": "loss", "value": "12.0", "error": ""}
    assert stop["values"][1]["value"] == "'step 0'"
    assert [frame["function"] for frame in stop["stack"]] == ["train_step", "rank_main", "<module>"]
    assert stop["stack"][0]["file"] == str(JOBS / "plain_ranks.py")
    assert stop["source"].startswith("return loss, label")
    assert (under.results, under.exit_code) == (plain(*JOB).results, 0)


def test_standard_output_is_the_jobs_alone() -> None:
    job = python("-c", "import sys; sys.stdout.write('a\\x00b\\n'); sys.stderr.write('mine\\n')")
    under = run([], *job)
    assert under.output == plain(*job).output == "a\x00b\n"
    assert "mine\n" in under.errors


def test_an_error_in_a_printed_expression_is_shown() -> None:
    under = run(["--break", at("plain_ranks.py", "step", "@0"), "--print", "nothing_here", "--print", "1/0"], *JOB)
    first, second = under.of("stopped")[0]["values"]
    assert "NameError" in first["error"] and "nothing_here" in first["error"]
    assert "ZeroDivisionError" in second["error"]


def test_values_are_those_of_the_frame_that_was_hit_in_an_installed_package_too(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "tinypkg"
    package.mkdir(parents=True)
    source = package / "__init__.py"
    source.write_text("def double(number):\n    answer = 2 * number\n    return answer\n")
    path = os.pathsep.join([str(package.parent), environment()["PYTHONPATH"]])
    under = run(["--break", f"{source}:3", "--print", "answer"], *python("uses_package.py"), PYTHONPATH=path)
    [stop] = under.of("stopped")
    assert (stop["stack"][0]["file"], stop["stack"][0]["line"]) == (str(source), 3)
    assert stop["values"] == [{"expression": "answer", "value": "8", "error": ""}]
    assert under.results == ["RESULT 8"]


def test_a_condition_is_kept_per_rank() -> None:
    under = run(["--break", at("plain_ranks.py", "step", "@0,2 if step == 1")], *JOB)
    assert under.stops == ["world 0", "world 2"]


def test_logpoints_name_their_rank() -> None:
    under = run(["--log", at("plain_ranks.py", "step", "@1-2: {label} has loss {loss} (100%)")], *JOB)
    assert under.stops == []
    assert sorted((line["rank"], line["text"]) for line in under.of("log")) == [
        ("world 1", "step 0 has loss 11.0 (100%)"),
        ("world 1", "step 1 has loss 6.0 (100%)"),
        ("world 2", "step 0 has loss 12.0 (100%)"),
        ("world 2", "step 1 has loss 7.0 (100%)"),
    ]


def test_the_driver_is_addressed_by_its_name() -> None:
    options = ["--break", at("plain_ranks.py", "launcher", "@driver"), "--break", at("plain_ranks.py", "step", "@1")]
    under = run(options, *JOB)
    assert under.stops == ["driver plain_ranks.py", "world 1", "world 1"]


def test_ranks_outside_the_launch_set_do_not_stop() -> None:
    under = run(["--ranks", "0", "--break", at("plain_ranks.py", "step")], *JOB)
    assert under.stops == ["world 0", "world 0"]


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_is_kept(code: int) -> None:
    under = run(["--break", at("plain_ranks.py", "step", "@1")], *JOB, JOB_EXIT_CODE=str(code))
    assert under.exit_code == code
    assert under.results == plain(*JOB).results


def test_death_by_a_signal_is_told_as_a_shell_does() -> None:
    under = run([], *python("-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    assert under.exit_code == 128 + signal.SIGKILL


def test_standard_input_is_the_jobs() -> None:
    argv = [*cli(), "--", *python("-c", "print('got', input())")]
    done = subprocess.run(
        argv, input="hello\n", env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "got hello\n"


def test_text_for_a_person() -> None:
    argv = [*cli("--break", at("plain_ranks.py", "step", "@1"), "--print", "loss"), "--", *JOB]
    done = subprocess.run(argv, cwd=JOBS, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    line = line_of("plain_ranks.py", "step")
    assert f"rankscope: world 1 stopped (breakpoint) at plain_ranks.py:{line} in train_step\n" in done.stderr
    assert "rankscope:   loss = 11.0\n" in done.stderr


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "command", "exit_code", "code"),
    [
        (["--break", "plain_ranks.py"], JOB, 2, "bad-location"),
        (["--break", "plain_rank.py:3"], JOB, 2, "no-such-file"),
        (["--break", "plain_ranks.py:1@x"], JOB, 2, "bad-rank-set"),
        (["--break", "plain_ranks.py:1 if a b"], JOB, 2, "bad-condition"),
        (["--print", "a b"], JOB, 2, "bad-condition"),
        (["--ranks", "3-1"], JOB, 2, "bad-rank-set"),
        ([], (), 2, "nothing-to-run"),
        ([], ("no-such-command-here",), 127, "no-such-program"),
        ([], ("./plain_ranks.py",), 126, "no-such-program"),
    ],
)
def test_bad_input_starts_nothing(options: list[str], command: tuple[str, ...], exit_code: int, code: str) -> None:
    under = run(options, *command)
    assert under.exit_code == exit_code
    assert [line["code"] for line in under.of("notice")] == [code]
    assert under.output == ""


def test_a_program_that_does_not_exist_is_the_pythons_to_report() -> None:
    under = run([], *python("no_such_script.py"))
    assert (under.exit_code, under.output) == (plain(*python("no_such_script.py")).exit_code, "")


def test_a_line_without_code_says_where_it_stops() -> None:
    under = run(["--break", at("plain_ranks.py", "comment", "@0")], *JOB)
    [told] = under.of("breakpoint")
    assert told["location"].startswith("plain_ranks.py:")
    assert "no code" in told["message"] and told["verified"]


def test_a_breakpoint_that_never_bound_is_named() -> None:
    under = run(["--break", at("plain_ranks.py", "step", "@7")], *JOB)
    [told] = under.of("breakpoint")
    assert told["location"].endswith("@7") and not told["verified"]
    assert under.stops == []


def test_a_job_that_ends_before_a_rank_joins() -> None:
    under = run(["--break", at("plain_ranks.py", "step", "@0")], "true")
    assert under.exit_code == 0
    assert [line["text"] for line in under.of("notice")] == ["the job ended before any rank joined."]


def test_a_python_without_debugpy_says_so(tmp_path: Path) -> None:
    (tmp_path / "debugpy.py").write_text("raise ModuleNotFoundError(\"No module named 'debugpy'\", name='debugpy')\n")
    job = ("sh", "-c", f'PYTHONPATH="{tmp_path}:$PYTHONPATH" exec "{sys.executable}" plain_ranks.py 1 1')
    under = run(["--break", at("plain_ranks.py", "step")], *job)
    assert under.exit_code == 0
    assert under.results == ["RESULT launcher done", "RESULT rank=0 step 0 loss=10.000"]
    assert any("debugpy is not installed" in line["text"] for line in under.of("notice"))


# --- ends -----------------------------------------------------------------------------------------


def test_a_time_out_ends_the_whole_job(tmp_path: Path) -> None:
    started = time.monotonic()
    under = run(["--timeout", "2"], *JOB, HOLD_FILE=str(tmp_path / "never"))
    assert under.exit_code == 124
    assert time.monotonic() - started < 15
    assert "more than 2 s" in under.of("notice")[0]["text"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reaches_the_job_once(number: signal.Signals, tmp_path: Path) -> None:
    counted = tmp_path / "counted"
    code = (
        "import signal, sys, time, pathlib\n"
        "got = []\n"
        f"signal.signal({int(number)}, lambda *_: got.append(1))\n"
        "print('ready', flush=True)\n"
        "while not got: time.sleep(0.01)\n"
        "time.sleep(0.5)\n"
        f"pathlib.Path({str(counted)!r}).write_text(str(len(got)))\n"
        "sys.exit(9)\n"
    )
    argv = [*cli(), "--", *python("-c", code)]
    with subprocess.Popen(
        argv, env=environment(), stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(30) == 9
    assert counted.read_text() == "1"


def test_two_hubs_at_once_do_not_meet(tmp_path: Path) -> None:
    options = ["--json", "--break", at("plain_ranks.py", "step", "@1"), "--print", "loss"]
    argv = [*cli(*options), "--", *JOB]
    both = [
        subprocess.Popen(argv, cwd=JOBS, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    ends = [process.communicate(timeout=60) for process in both]
    for output, errors in ends:
        said = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
        assert [line["rank"] for line in said if line["rankscope"] == "stopped"] == ["world 1", "world 1"]
        assert sorted(output.splitlines()) == sorted(plain(*JOB).output.splitlines())


def _holding(tmp_path: Path) -> tuple[subprocess.Popen[str], Path]:
    """A run whose three ranks wait at their end for a file; returns once they all do."""
    hold = tmp_path / "hold"
    argv = [*cli("--json"), "--", *JOB]
    process = subprocess.Popen(
        argv,
        cwd=JOBS,
        env=environment(HOLD_FILE=str(hold)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    for _ in range(6):  # two steps of three ranks
        assert process.stdout.readline().startswith("RESULT")
    return process, hold


def _hub_of(process: subprocess.Popen[str]) -> psutil.Process:
    children = psutil.Process(process.pid).children()
    return next(child for child in children if "rankscope.hub" in child.cmdline())


def _ranks_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    job = next(child for child in psutil.Process(process.pid).children() if "plain_ranks.py" in child.cmdline()[1])
    return job.children()


def test_the_hub_is_killed_and_the_job_goes_on(tmp_path: Path) -> None:
    process, hold = _holding(tmp_path)
    _hub_of(process).kill()
    hold.touch()
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert output == "RESULT launcher done\n"
    assert "the hub has gone; the job goes on" in errors


def test_the_terminal_is_killed_and_nothing_is_left(tmp_path: Path) -> None:
    process, _ = _holding(tmp_path)
    started = [_hub_of(process), *psutil.Process(process.pid).children(recursive=True)]
    process.kill()
    process.communicate(timeout=60)
    _, alive = psutil.wait_procs(started, timeout=10)
    assert alive == []


def test_the_driver_is_killed_and_nothing_is_left(tmp_path: Path) -> None:
    process, _ = _holding(tmp_path)
    ranks = _ranks_of(process)
    assert len(ranks) == 3
    ranks[0].parent().kill()  # type: ignore[union-attr]
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGKILL
    _, alive = psutil.wait_procs(ranks, timeout=10)
    assert alive == []


def test_a_terminal_of_its_own_is_kept(tmp_path: Path) -> None:
    """On a tty the job sees a tty, in the foreground, and Ctrl-C reaches it once."""
    master, slave = os.openpty()
    code = (
        "import os, sys, signal, time\n"
        "got = []\n"
        "signal.signal(signal.SIGINT, lambda *_: got.append(1))\n"
        "print(sys.stdin.isatty(), sys.stdout.isatty(), os.tcgetpgrp(0) == os.getpgrp(), flush=True)\n"
        "while not got: time.sleep(0.01)\n"
        "time.sleep(0.5)\n"
        "sys.exit(40 + len(got))\n"
    )
    argv = [*cli(), "--", *python("-c", code)]
    wrapped = (
        "import fcntl, os, sys, termios\n"
        "os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
        "os.execv(sys.executable, sys.argv[1:])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", wrapped, *argv], env=environment(), stdin=slave, stdout=slave, stderr=slave
    ) as process:
        os.close(slave)
        seen = b""
        while b"\n" not in seen:
            seen += os.read(master, 1024)
        assert seen.splitlines()[0] == b"True True True"
        os.write(master, b"\x03")
        assert process.wait(30) == 41
    os.close(master)
