"""Which processes of this host belong to a job."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rankscope.hub import processes
from rankscope.wire.link import JOB_FILE_VARIABLE, JOB_VARIABLE

pytestmark = [pytest.mark.core, pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")]

FILE = Path("/nowhere/rankscope-1/job.json")


@pytest.mark.parametrize(
    ("mark", "is_of_job"),
    [
        ({JOB_VARIABLE: "abc", JOB_FILE_VARIABLE: str(FILE)}, True),
        ({JOB_VARIABLE: "abc"}, True),
        ({JOB_FILE_VARIABLE: str(FILE)}, True),  # what is left of it in a process that has set its title
        ({JOB_VARIABLE: "abcd", JOB_FILE_VARIABLE: f"{FILE}.other"}, False),
        ({"OTHER": f"{JOB_VARIABLE}=abc {FILE}"}, False),
    ],
)
def test_a_process_is_known_by_the_job_or_by_its_file(mark: dict[str, str], *, is_of_job: bool) -> None:
    command = [sys.executable, "-c", "print('ready', flush=True); input()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=mark, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline()
        assert (process.pid in processes.of_job("abc", FILE)) == is_of_job
        process.communicate(b"\n")
