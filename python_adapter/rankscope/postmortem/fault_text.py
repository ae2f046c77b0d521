"""The text that ``faulthandler`` writes when a signal ends a process, read as a dump without values."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankscope.postmortem import dump
from rankscope.wire.link import pointed_fault

_SIGNALS = {
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Illegal instruction": "SIGILL",
    "Floating point exception": "SIGFPE",
    "Floating-point exception": "SIGFPE",
}
_HEAD = re.compile(r"^Fatal Python error: (.*)$", re.MULTILINE)
# "Stack" where the handler writes the current thread's alone.
_THREAD = re.compile(r"^(Current thread|Thread|Stack)( 0x[0-9a-f]+)?.*\(most recent call first\):$")
_FRAME = re.compile(r'^  File "(.*)", line (\d+|\?\?\?) in (.*)$')
_LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python3.")
_OURS = "/rankscope/agent/"
_MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Fault:
    """One death by a signal. ``place`` is the innermost frame of the person's own code: name, path, line."""

    signal: str
    message: str
    dump: dict[str, Any]
    place: tuple[str, str, int]

    @property
    def is_fatal(self) -> bool:
        """Whether the process itself did something wrong; not merely asked to end."""
        return self.signal != "SIGTERM"


def read(path: Path) -> Fault | None:
    """What a file tells, or the one it points to; ``None`` when neither does. A torn end is left out."""
    content = _content(path)
    found = parse(content.decode(errors="replace"))
    pointed = pointed_fault(content)
    if pointed is None or (found is not None and found.is_fatal):
        return found
    return parse(_content(Path(pointed[0]), pointed[1]).decode(errors="replace")) or found


def _content(path: Path, start: int = 0) -> bytes:
    """The last :data:`_MAX_BYTES` of a regular file from ``start`` on; nothing where it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(start, os.fstat(file.fileno()).st_size - _MAX_BYTES))
            return file.read(_MAX_BYTES)
    except OSError:
        return b""


def parse(text: str) -> Fault | None:
    """The same of a text."""
    frames: list[dict[str, Any]] = []
    threads = [thread for thread in _threads(text, frames) if not thread.pop("isOurs")]
    head = _HEAD.search(text)
    if not threads and head is None:
        return None
    message = head.group(1).strip() if head else "asked to end"
    name = _SIGNALS.get(message, message) if head else "SIGTERM"
    if threads:
        threads[-1]["isMain"] = True  # the first one that began is the last one written
        failing = next((thread for thread in threads if head and thread["isCurrent"]), threads[-1])
        failing["isFailing"] = True
        threads.sort(key=lambda thread: not thread["isFailing"])
    stack = threads[0]["frames"] if threads else []
    for thread in threads:
        thread["name"] = "MainThread" if thread["isMain"] else f"Thread {thread['ident']}"
        del thread["isCurrent"]
    own = [frames[number] for number in stack if frames[number]["isUser"]] or [frames[number] for number in stack]
    place = (own[0]["name"], own[0]["path"], own[0]["line"]) if own else ("", "", 0)
    whole = {
        "version": dump.VERSION,
        "at": time.time(),
        "exception": {"type": name, "message": message, "frames": stack[::-1]},
        "threads": threads,
        "frames": frames,
        "nodes": [],
        "sources": dump.sources_of({frame["path"] for frame in frames if frame["isUser"]}),
        "cut": {},
    }
    return Fault(name, message, whole, place)


def of_place(name: str, path: str, line: int, what: str) -> dict[str, Any]:
    """A dump of which nothing but one frame is known: where a process was seen last, and what ended it."""
    frame = {"name": name, "path": path, "line": line, "isUser": True}
    thread = {"name": "MainThread", "ident": 0, "isMain": True, "isFailing": True, "frames": [0]}
    return {
        "version": dump.VERSION,
        "at": time.time(),
        "exception": {"type": "killed", "message": what, "frames": [0]},
        "threads": [thread],
        "frames": [frame],
        "nodes": [],
        "sources": dump.sources_of({path}),
        "cut": {},
    }


def _threads(text: str, frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    threads: list[dict[str, Any]] = []
    is_ours = False
    for line in text.splitlines():
        head, frame = _THREAD.match(line), _FRAME.match(line)
        if head is not None:
            is_current, is_ours = head.group(1) != "Thread", False
            threads.append(
                {"ident": int(head.group(2) or "0", 16), "frames": [], "isMain": False, "isFailing": False}
                | {"isCurrent": is_current, "isOurs": False}
            )
        elif frame is not None and threads:
            path, number, name = frame.groups()
            if _OURS in path:
                is_ours = True
                continue
            if is_ours and path.endswith("/threading.py") and name.endswith("run"):
                threads[-1]["isOurs"] = True
            is_ours = False
            threads[-1]["frames"].append(len(frames))
            is_user = not path.startswith("<") and not any(folder in path for folder in _LIBRARIES)
            at = int(number) if number.isdigit() else 0
            frames.append({"name": name, "path": path, "line": at, "isUser": is_user})
    return threads
