"""``python -m rankscope.hub --editor unix:PATH | tcp:PORT``: the hub of one job.

Prints one JSON line when it listens, serves until its root session and the job have
ended, and exits with 0.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import logging
import os
import secrets
import signal
import sys
from functools import partial
from pathlib import Path

from rankscope.errors import UserError
from rankscope.hub import open_files
from rankscope.hub.server import Hub

TOKEN_VARIABLE = "RANKSCOPE_EDITOR_TOKEN"  # noqa: S105 - the name of a variable
"""A token for TCP of one's own choice; without it one is made and stands in the line that the hub prints."""


_GARBAGE = (50_000, 20, 20)
"""With a thousand members an answer is made of 100,000 objects, and Python's own thresholds look through all of them
again and again; this halves the time."""


async def _serve(editor: str) -> None:
    hub = Hub(editor)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, hub.stop)
    kind, _, where = editor.partition(":")
    try:
        if kind == "unix":
            os.umask(0o077)
            server = await asyncio.start_unix_server(hub.accept, path=where)
        else:
            server = await asyncio.start_server(hub.accept, host="127.0.0.1", port=int(where or 0))
    except OSError as e:
        raise UserError(
            "editor-socket", f"The hub cannot listen on {editor}: {e.strerror or e}.", "Is another hub using it?"
        ) from e
    port = server.sockets[0].getsockname()[1] if kind == "tcp" else None
    if port is not None:
        hub.editor = f"tcp:{port}"
        hub.token = os.environ.pop(TOKEN_VARIABLE, "") or secrets.token_hex(16)
    line = {
        "ready": True,
        "pid": os.getpid(),
        "editor": editor,
        "port": port,
        "token": hub.token or None,
        "job": hub.endpoint.job,
    }
    print(json.dumps(line), flush=True)
    hub.give_up_without_front()
    async with server:
        await hub.serve()
    if kind == "unix":
        _leave(Path(where))


def _leave(socket: Path) -> None:
    """Remove the socket, and an empty private folder that was made for it: whoever made it may be gone by now."""
    with contextlib.suppress(OSError):
        socket.unlink(missing_ok=True)
        if socket.parent.samefile(Path.cwd()) and socket.parent.stat().st_mode & 0o777 == 0o700:
            socket.parent.rmdir()  # not one with anything in it


def main() -> int:
    """Parse, serve, return the exit code."""
    parser = argparse.ArgumentParser(prog="rankscope.hub", description=__doc__)
    parser.add_argument("--editor", default="tcp:0", metavar="unix:PATH|tcp:PORT", help="where editors connect")
    options = parser.parse_args()
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.INFO)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    gc.set_threshold(*_GARBAGE)
    open_files.raise_limit()
    run = partial(asyncio.run, _serve(options.editor))
    try:
        run()
    except UserError as e:
        print(json.dumps({"ready": False, "code": e.code, "message": e.message, "hint": e.hint}), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
