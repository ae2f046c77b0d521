"""``python -I in_terminal.py SOCKET -- COMMAND...``: the job in an editor's terminal.

The hub sends one line, ``{"cwd": …, "env": {…}, "first": [folders for PATH]}``; this answers ``{"pid": n}`` when the
job has started and ``{"exit": code}`` when it has ended, or ``{"error": why, "exit": code}`` when it could not start.
The job is a child in the same process group, so the terminal is its own: it reads the keyboard, and Ctrl-C, Ctrl-Z and
job control reach it once, as without us. This then ends as the job did. Only the standard library, and no RankScope:
it also has to work in a terminal that knows nothing of either.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from typing import Any

HUB_SECONDS = 10.0
_FAILED = 125
_NOT_EXECUTABLE = 126
_NOT_FOUND = 127
_MAX_LINE = 16 << 20
# The terminal sends these to the job as well; the others reach nobody but us.
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def main(arguments: list[str]) -> int:
    """Run the job to its end; returns its exit code, or dies of the signal that it died of."""
    where, argv = arguments[0], arguments[arguments.index("--") + 1 :]
    try:
        hub, plan = _ask(where)
    except (OSError, ValueError) as e:
        _say(f"RankScope's debug session does not answer ({e}): start it again.")
        return _FAILED
    code = _run(hub, argv, str(plan.get("cwd") or "."), _environment(plan))
    hub.close()
    if code < 0:
        _die_of(signal.Signals(-code))
    return code if code >= 0 else 128 - code


def _ask(where: str) -> tuple[socket.socket, dict[str, Any]]:
    """Connect and hear what is to be done. Raises ``OSError`` or ``ValueError`` within :data:`HUB_SECONDS`."""
    hub = socket.socket(socket.AF_UNIX)
    hub.settimeout(HUB_SECONDS)
    hub.connect(where)
    line = bytearray()
    while not line.endswith(b"\n"):
        data = hub.recv(1 << 16)
        if not data or len(line) > _MAX_LINE:
            raise ConnectionResetError("it has ended")
        line += data
    plan = json.loads(line)
    if not isinstance(plan, dict):
        raise ValueError("it sent something else")
    if plan.get("error"):
        raise ValueError(str(plan["error"]))
    return hub, plan


def _environment(plan: dict[str, Any]) -> dict[str, str]:
    """This terminal's environment with the hub's changes; what the terminal has on its paths stays, behind ours."""
    environment = dict(os.environ)
    own = environment.get("PYTHONPATH", "")
    changes: dict[str, str | None] = plan.get("env") or {}
    for name, text in changes.items():
        if text is None:
            environment.pop(name, None)
        else:
            environment[name] = text
    if own and changes.get("PYTHONPATH"):
        environment["PYTHONPATH"] = _joined(environment["PYTHONPATH"], own)
    if plan.get("first"):
        environment["PATH"] = _joined(*plan["first"], environment.get("PATH", os.defpath))
    return environment


def _joined(*paths: str) -> str:
    """One search path out of several, each folder once."""
    return os.pathsep.join(dict.fromkeys(folder for path in paths for folder in path.split(os.pathsep)))


def _run(hub: socket.socket, argv: list[str], cwd: str, environment: dict[str, str]) -> int:
    """Popen's return code: negative when a signal ended the job."""
    job: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, _frame: object) -> None:
        for process in job:
            process.send_signal(number)

    # A handler, not SIG_IGN, which the job would inherit. What is ignored already (nohup) stays so, here and there.
    for number in (*_FROM_TERMINAL, *_PASSED_ON):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, pass_on if number in _PASSED_ON else lambda _number, _frame: None)
    try:
        process = subprocess.Popen(argv, cwd=cwd, env=environment, close_fds=False)
    except OSError as e:
        is_there = not isinstance(e, FileNotFoundError)
        why = f"'{e.filename or argv[0]}' cannot be started: {e.strerror or e}."
        _say(why)
        code = _NOT_EXECUTABLE if is_there else _NOT_FOUND
        _tell(hub, {"error": why, "exit": code})
        return code
    job.append(process)
    _tell(hub, {"pid": process.pid})
    code = process.wait()
    _tell(hub, {"exit": code if code >= 0 else 128 - code})
    return code


def _tell(hub: socket.socket, message: dict[str, Any]) -> None:
    """The hub may have gone; the job goes on without it."""
    with contextlib.suppress(OSError):
        hub.sendall(json.dumps(message).encode() + b"\n")


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\n".encode())


def _die_of(number: signal.Signals) -> None:
    """End as the job did, so that the shell says the same of it; without a core of our own."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):  # SIGKILL has no handler
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
