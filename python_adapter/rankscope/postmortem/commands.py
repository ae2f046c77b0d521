"""``rankscope runs``, ``open`` and ``report``: what earlier runs left, in a terminal."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from rankscope.errors import UserError
from rankscope.postmortem import kept_run, listing, text

_RUN_HELP = "a folder in .rankscope/runs; by default the newest that keeps a failure"


def add_commands(commands: Any) -> None:
    """Add the three commands to ``argparse``'s sub-parsers."""
    runs = commands.add_parser("runs", help="list the runs of this folder, or delete old ones")
    runs.add_argument("--prune", type=_count, metavar="KEEP", help="delete all that have ended but the newest KEEP")
    runs.add_argument("--json", action="store_true", help="one JSON object a line instead of text")
    opened = commands.add_parser("open", help="show what failed in a run, with its values, and where the others were")
    opened.add_argument("run", nargs="?", default="", metavar="RUN", help=_RUN_HELP)
    opened.add_argument("--json", action="store_true", help="the dumps as one JSON object a process")
    report = commands.add_parser("report", help="write what failed in a run as one HTML file")
    report.add_argument("run", nargs="?", default="", metavar="RUN", help=_RUN_HELP)
    report.add_argument("--html", default="report.html", metavar="FILE", help="where to; by default report.html")
    report.add_argument("--json", action="store_true", help=argparse.SUPPRESS)


def _count(given: str) -> int:
    count = int(given)
    if count < 0:
        raise argparse.ArgumentTypeError(f"'{given}' is below 0")
    return count


def _runs(options: argparse.Namespace, base: Path, out: TextIO) -> int:
    if options.prune is not None:
        gone = listing.prune(base, keep=options.prune)
        print(f"{len(gone)} runs deleted", file=out)
        return 0
    found = listing.runs(base)
    lines = (json.dumps(run.as_json()) for run in found) if options.json else text.listing(found)
    for line in lines:
        print(line, file=out)
    return 0


def _open(options: argparse.Namespace, base: Path, out: TextIO) -> int:
    folder = listing.find(options.run, base)
    run = kept_run.open_run(folder)
    if not run.kept and not run.findings:
        raise UserError("no-failure", f"'{folder}' keeps no failure.", " ".join(run.problems))
    if options.json:
        for kept in run.kept:
            print(json.dumps({**kept.about, "dump": kept.load()}), file=out)
        return 0
    for line in text.post_mortem(run):
        print(line, file=out)
    return 0


def _report(options: argparse.Namespace, base: Path, out: TextIO) -> int:
    from rankscope.postmortem import report  # jinja2 is loaded by no other command

    target = base / options.html
    report.write(listing.find(options.run, base), target)
    print(target, file=out)
    return 0


COMMANDS: dict[str, Callable[[argparse.Namespace, Path, TextIO], int]] = {
    "runs": _runs,
    "open": _open,
    "report": _report,
}
