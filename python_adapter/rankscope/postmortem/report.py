"""A run's failure as one self-contained HTML file: what failed, where everybody was, what was kept."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rankscope.errors import UserError
from rankscope.postmortem import text
from rankscope.postmortem.kept_run import Kept, KeptRun, open_run

_SOURCE_LINES = 4
_MAX_VARIABLES = 60
_MAX_DEPTH = 3


def write(folder: Path, target: Path) -> None:
    """Write the report of a record's folder. Raises :class:`UserError` ``no-failure`` or ``cannot-write``."""
    run = open_run(folder)
    if not run.kept and not run.findings:
        hint = " ".join(run.problems) or "Only runs in which something failed have a report."
        raise UserError("no-failure", f"'{folder}' keeps no failure.", hint)
    html = render(folder, run)
    try:
        target.write_text(html, encoding="utf-8")
    except OSError as e:
        raise UserError("cannot-write", f"'{target}' cannot be written: {e.strerror or e}.") from e


def render(folder: Path, run: KeptRun) -> str:
    """The report as HTML."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    processes = [_process(kept) for kept in run.kept]
    return environment.get_template("report.html.j2").render(
        name=folder.name,
        about=_run_file(folder),
        problems=run.problems,
        failures=_failures(run.findings),
        hangs=text.hangs(run),
        processes=processes,
        stacks=_merged(processes),
        failed=next((process for process in processes if process["failed"]), None),
    )


def _run_file(folder: Path) -> dict[str, Any]:
    try:
        about = json.loads((folder / "run.json").read_text())
    except (OSError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}


def _failures(findings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Who failed when, in time order; ``after`` is in seconds since the first of its episode."""
    crashes = [finding for finding in findings if finding.get("kind") == "crash"]
    crashes.sort(key=lambda finding: float(finding.get("at") or 0))
    begins: dict[Any, float] = {}
    for crash in crashes:
        at = float(crash.get("at") or 0)
        crash["after"] = at - begins.setdefault(crash.get("episode"), at)
        crash["clock"] = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
    return crashes


def _process(kept: Kept) -> dict[str, Any]:
    dump = kept.load()
    threads = sorted(dump["threads"], key=lambda thread: (not thread["isFailing"], not thread["isMain"]))
    return {
        **kept.about,
        "exception": _chain(dump["exception"]) if dump["exception"] else [],
        "threads": [{**thread, "frames": [_frame(dump, number) for number in thread["frames"]]} for thread in threads],
        "python": dump.get("python", ""),
        "argv": " ".join(map(str, dump.get("argv") or ())),
        "env": sorted((dump.get("env") or {}).items()),
        "cut": dump.get("cut") or {},
    }


def _chain(error: dict[str, Any]) -> list[dict[str, Any]]:
    """The exception and those behind it, the one raised last first."""
    found = [error]
    for key, how in (("cause", "caused by"), ("context", "while handling")):
        if key in error:
            found += [{**other, "how": other.get("how", how)} for other in _chain(error[key])]
    for member in error.get("members", ()):
        found += [{**other, "how": "of the group"} for other in _chain(member)]
    return found


def _frame(dump: dict[str, Any], number: int) -> dict[str, Any]:
    frame = dump["frames"][number]
    text = dump["sources"].get(frame["path"], {}).get("text", "")
    lines = text.splitlines()
    first = max(0, frame["line"] - _SOURCE_LINES)
    scope = dump["nodes"][frame["locals"]] if "locals" in frame else {"kids": []}
    return {
        **frame,
        "file": Path(frame["path"]).name,
        "source": [(at + 1, line) for at, line in enumerate(lines) if first <= at < frame["line"] + 2],
        "variables": _variables(dump["nodes"], scope, 0),
    }


def _variables(nodes: list[dict[str, Any]], node: dict[str, Any], depth: int) -> list[dict[str, Any]]:
    found = []
    for name, number in node.get("kids", ())[:_MAX_VARIABLES]:
        value = nodes[number]
        parts = _variables(nodes, value, depth + 1) if depth < _MAX_DEPTH else []
        found.append({"name": name, "type": value["type"], "text": value["text"], "parts": parts})
    left_out = len(node.get("kids", ())) - len(found) + int(node.get("more") or 0)
    if left_out:
        found.append({"name": "…", "type": "", "text": f"{left_out:,} more", "parts": []})
    return found


def _merged(processes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Equal stacks together, the rarest first: who stood apart is what one looks for."""
    groups: dict[tuple[tuple[str, str, int], ...], list[str]] = {}
    for process in processes:
        if not process["threads"]:
            continue
        frames = [frame for frame in process["threads"][0]["frames"] if frame.get("isUser")]
        stack = tuple((frame["name"], frame["file"], frame["line"]) for frame in frames[::-1])
        groups.setdefault(stack, []).append(str(process.get("label")))
    merged = [{"stack": stack, "labels": labels} for stack, labels in groups.items()]
    merged.sort(key=lambda group: len(group["labels"]))
    return merged
