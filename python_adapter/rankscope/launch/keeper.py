"""``python -I keeper.py FILES COMMAND...``: the command on a terminal of its own, whose output outlives its reader.

The hub starts a driver through it. The driver sees a terminal, so colours and buffering
are what they were; what it prints goes to this process's standard output, and is thrown
away once nobody reads there: the hub may die and the job prints on. ``FILES`` is its limit of
open files, for the hub has raised its own. Exits with the command's code, 128 + n when
signal n ended it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import termios

NOT_FOUND = 127
_CHUNK = 1 << 16
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(files: int, argv: list[str]) -> int:
    """Run the command to its end; returns its exit code."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    master, slave = os.openpty()
    attributes = termios.tcgetattr(slave)
    attributes[1] &= ~termios.OPOST  # lines end as the program wrote them
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    try:
        driver = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, start_new_session=True)
    except OSError as e:
        os.write(2, f"{argv[0]}: {e.strerror}\n".encode())
        return NOT_FOUND
    os.close(slave)
    for number in _PASSED_ON:
        signal.signal(number, lambda received, _frame: driver.send_signal(received))
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    _copy(master)
    code = driver.wait()
    return code if code >= 0 else 128 - code


def _copy(master: int) -> None:
    """Everything that comes from the terminal, until its last writer has gone."""
    while True:
        try:
            data = os.read(master, _CHUNK)
        except OSError:  # EIO: nobody holds the other end any more
            return
        if not data:
            return
        with contextlib.suppress(OSError):
            os.write(1, data)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
