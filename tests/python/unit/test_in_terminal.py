"""The launcher in an editor's terminal: what it tells the hub, and that the job is what it is without it."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rankscope.launch import in_terminal
from support.runs import until

JOB = """
import os, signal, sys
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append("INT"))
print("ready", sys.stdin.isatty(), os.getcwd(), os.environ.get("ADDED"), os.environ.get("GONE"), flush=True)
signal.signal(signal.SIGALRM, lambda *_: None)
while not seen:
    signal.pause()
signal.setitimer(signal.ITIMER_REAL, 0.3)  # a second one would have come by then
signal.pause()
print("seen", *seen, input(), flush=True)
sys.exit(7)
"""


class Hub:
    """The hub's end: one connection, a line out, lines in."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "driver"
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(self.path))
        self.server.listen()
        self.server.settimeout(20)
        self.heard: list[dict[str, Any]] = []

    def argv(self, *command: str) -> list[str]:
        return [sys.executable, "-I", in_terminal.__file__, str(self.path), "--", *command]

    def accept(self, **plan: Any) -> None:
        self.connection, _ = self.server.accept()
        self.connection.settimeout(20)
        self.connection.sendall(json.dumps(plan).encode() + b"\n")
        self.lines = self.connection.makefile("r")

    def hear(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.lines.readline() or '{"lost": true}')
        return message

    def close(self) -> None:
        for each in ("lines", "connection", "server"):
            with contextlib.suppress(AttributeError):
                getattr(self, each).close()


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    made = Hub(tmp_path)
    yield made
    made.close()


class Terminal:
    """A pseudo-terminal whose foreground process is the launcher, as a shell starts it."""

    def __init__(self, argv: list[str], **added: str) -> None:
        self.output = ""
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            os.environ.update(added)
            os.execv(argv[0], argv)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def until(self, text: str) -> None:
        while text not in self.output:
            self.output += os.read(self._master, 4096).decode()

    def wait(self) -> int:
        with contextlib.suppress(OSError):  # the terminal has no reader left
            while data := os.read(self._master, 4096):
                self.output += data.decode()
        _, status = os.waitpid(self.pid, 0)
        os.close(self._master)
        return os.waitstatus_to_exitcode(status)


def test_the_terminal_is_the_jobs_own_and_ctrl_c_reaches_it_once(hub: Hub, tmp_path: Path) -> None:
    terminal = Terminal(hub.argv(sys.executable, "-c", JOB), GONE="1")
    hub.accept(cwd=str(tmp_path), env={"ADDED": "yes", "GONE": None})
    pid = hub.hear()["pid"]
    terminal.until(f"ready True {tmp_path} yes None")
    assert os.getpgid(pid) == os.getpgid(terminal.pid)
    terminal.type("\x03")
    terminal.type("some text\n")
    terminal.until("seen INT some text")
    assert terminal.wait() == 7
    assert hub.hear() == {"exit": 7}
    assert hub.hear() == {"lost": True}


def test_it_ends_as_the_job_did(hub: Hub) -> None:
    for command, code, told in (
        ("exit 3", 3, 3),
        ("kill -KILL $$", -signal.SIGKILL, 137),
        ("kill -TERM $$", -signal.SIGTERM, 143),
    ):
        with subprocess.Popen(hub.argv("/bin/sh", "-c", command)) as launcher:
            hub.accept(cwd="/", env={})
            assert "pid" in hub.hear()
            assert hub.hear() == {"exit": told}
            assert launcher.wait(20) == code


def test_what_is_sent_to_it_alone_is_passed_on(hub: Hub) -> None:
    with subprocess.Popen(hub.argv("/bin/sleep", "60")) as launcher:
        hub.accept(cwd="/", env={})
        hub.hear()
        launcher.terminate()
        assert hub.hear() == {"exit": 143}
        assert launcher.wait(20) == -signal.SIGTERM


def test_the_terminals_own_python_path_stays_behind_ours(hub: Hub) -> None:
    command = ("/bin/sh", "-c", 'test "$PYTHONPATH" = /ours:/both:/own')
    environment = {**os.environ, "PYTHONPATH": "/own:/both"}
    with subprocess.Popen(hub.argv(*command), env=environment) as launcher:
        hub.accept(cwd="/", env={"PYTHONPATH": "/ours:/both"})
        hub.hear()
        assert hub.hear() == {"exit": 0}
        assert launcher.wait(20) == 0


def test_a_chosen_environments_programs_come_first(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "its_own").write_text("#!/bin/sh\nexit 9\n")
    (tmp_path / "its_own").chmod(0o755)
    with subprocess.Popen(hub.argv("its_own")) as launcher:
        hub.accept(cwd="/", env={}, first=[str(tmp_path)])
        hub.hear()
        assert hub.hear() == {"exit": 9}
        assert launcher.wait(20) == 9


@pytest.mark.parametrize(
    ("command", "cwd", "code"), [("/no/such", "/", 127), ("/bin/true", "/no/folder", 127), ("/etc/hostname", "/", 126)]
)
def test_a_job_that_cannot_start_is_told_in_both_places(hub: Hub, command: str, cwd: str, code: int) -> None:
    with subprocess.Popen(hub.argv(command), stderr=subprocess.PIPE, text=True) as launcher:
        hub.accept(cwd=cwd, env={})
        told = hub.hear()
        assert told["exit"] == code and "cannot be started" in told["error"]
        assert launcher.communicate(timeout=20)[1].strip() == told["error"]
        assert launcher.returncode == code


def test_a_hub_that_is_gone_silent_or_unwilling_is_said_within_a_bound(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(in_terminal, "HUB_SECONDS", 0.1)
    assert in_terminal.main([str(hub.path), "--", "true"]) == 125  # accepted, but never answered
    assert in_terminal.main([str(hub.path) + "x", "--", "true"]) == 125
    said = capfd.readouterr().err
    assert said.count("RankScope's debug session does not answer") == 2, said
    with subprocess.Popen(hub.argv("/bin/true"), stderr=subprocess.PIPE, text=True) as launcher:
        hub.server.accept()[0].close()  # the one that gave up
        hub.accept(error="this job has been started already")
        assert "started already" in launcher.communicate(timeout=20)[1]
        assert launcher.returncode == 125


def test_a_hub_that_goes_leaves_the_job_alone(hub: Hub, tmp_path: Path) -> None:
    go_on = tmp_path / "go_on"
    command = ("/bin/sh", "-c", f"while test ! -e {go_on}; do sleep 0.02; done; exit 5")
    with subprocess.Popen(hub.argv(*command)) as launcher:
        hub.accept(cwd="/", env={})
        hub.hear()
        hub.close()
        go_on.touch()
        until(lambda: launcher.poll() is not None, "the launcher's end")
        assert launcher.returncode == 5
