"""Kept runs as text for a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rankscope.escapes import without_escapes
from rankscope.postmortem.kept_run import Kept, KeptRun
from rankscope.postmortem.listing import Run

_MAX_VARIABLES = 20
_WIDTH = 110


def listing(found: list[Run]) -> Iterator[str]:
    """A line a run, the newest first."""
    for run in found:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started))
        ending = run.state if run.exit_code is None else f"exit {run.exit_code}"
        mark = "failure kept" if run.has_failure else ""
        facts = f"{when}  {ending:10}  {_size(run.bytes):>8}  {mark:12}"
        words = (word.rpartition("/")[2] if word.startswith("/") else word for word in run.command.split(" "))
        yield f"{run.folder.name:40}  {facts}  {' '.join(words)[:60]}".rstrip()


def post_mortem(run: KeptRun) -> Iterator[str]:
    """What failed, with its chain, frames and values; where the others were; what is not sound."""
    for problem in run.problems:
        yield f"note: {problem}"
    for kept in run.kept:
        if kept.about.get("failed"):
            yield from _failed(kept)
    others = [kept for kept in run.kept if not kept.about.get("failed")]
    if others:
        yield "where the others were at that moment:"
        for kept in others:
            yield f"  {kept.about.get('label')}: {_where(kept.load())}"
    for hang in hangs(run):
        yield f"{hang['kind']}: {hang['text']}" + (f" ({hang['how']})" if hang["how"] else "")
        yield from (f"  {line}".rstrip() for line in without_escapes(hang["details"]["text"]).splitlines()[1:])
    followed = [f for f in run.findings if f.get("kind") == "crash" and not f.get("isFirst")]
    if followed:
        yield "what followed:"
        for finding in followed:
            yield f"  {finding.get('label')}: {finding.get('text')}"


def hangs(run: KeptRun) -> list[dict[str, Any]]:
    """The findings of ranks that waited for each other, or disagreed."""
    return [finding for finding in run.findings if finding.get("kind") in ("hang", "mismatch")]


def _failed(kept: Kept) -> Iterator[str]:
    dump = kept.load()
    about = kept.about
    yield f"{about.get('label')} failed: {about.get('ending')}  (pid {about.get('pid')} on {about.get('host')})"
    error: dict[str, Any] | None = dump["exception"]
    how = ""
    while error is not None:
        yield f"  {how}{error['type']}: {without_escapes(error['message'])}"
        for note in error.get("notes", ()):
            yield f"    {note}"
        how, error = ("caused by ", error["cause"]) if "cause" in error else ("while handling ", error.get("context"))
    failing = next((thread for thread in dump["threads"] if thread["isFailing"]), None)
    frames = [dump["frames"][number] for number in failing["frames"]] if failing else []
    own = [frame for frame in frames if frame.get("isUser")] or frames
    for at, frame in enumerate(own):
        yield f"  {Path(frame['path']).name}:{frame['line']} in {frame['name']}{_source(dump, frame)}"
        if at == 0:
            yield from _values(dump, frame)


def _source(dump: dict[str, Any], frame: dict[str, Any]) -> str:
    lines = dump["sources"].get(frame["path"], {}).get("text", "").splitlines()
    return f":  {lines[frame['line'] - 1].strip()}" if 0 < frame["line"] <= len(lines) else ""


def _values(dump: dict[str, Any], frame: dict[str, Any]) -> Iterator[str]:
    kids = dump["nodes"][frame["locals"]]["kids"] if "locals" in frame else []
    for name, number in kids[:_MAX_VARIABLES]:
        text = dump["nodes"][number]["text"]
        yield f"    {name} = {text if len(text) <= _WIDTH else text[:_WIDTH] + '…'}"
    if len(kids) > _MAX_VARIABLES:
        yield f"    … {len(kids) - _MAX_VARIABLES} more"


def _where(dump: dict[str, Any]) -> str:
    frames = [dump["frames"][number] for number in dump["threads"][0]["frames"]] if dump["threads"] else []
    own = next((at for at, frame in enumerate(frames) if frame.get("isUser")), None)
    if own is None:
        return "no frame of your own code"
    frame = frames[own]
    called = next((one["name"] for one in reversed(frames[:own]) if "wrapper" not in one["name"]), "")
    inside = f", in {called}" if called else ""
    return f"{Path(frame['path']).name}:{frame['line']} in {frame['name']}{inside}"


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return ""
