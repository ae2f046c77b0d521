"""The ``rankscope`` command."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rankscope import record
from rankscope.errors import UserError
from rankscope.hub.conditions import compile_expression
from rankscope.launch.attached import Attached
from rankscope.launch.child import NOT_EXECUTABLE, NOT_FOUND
from rankscope.launch.locations import parse_breakpoint, parse_logpoint
from rankscope.launch.report import Report
from rankscope.launch.terminal import OWN_FAILURE, Plan, Terminal
from rankscope.postmortem import commands as kept
from rankscope.ranks import RankSet

_USAGE = 2
_EPILOG = """\
examples:
  rankscope run --break 'train.py:42@2' --print loss -- python train.py
  rankscope run --break 'train.py:42@0,3-5 if loss > 10' -- torchrun --nproc-per-node 8 train.py
  rankscope run --log 'train.py:42@actor/0: step {step} loss {loss}' -- bash run.sh

ranks: all  0  0,3-5  0-31:4 (stride)  local:0 (on every node)  node:1  actor/0-3 (of a group)  driver
Everything RankScope says goes to standard error; standard output is the job's alone.
The exit code is the job's own; 124: --timeout ended it, 125: RankScope failed, 127: no such command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, do what it says, return the exit code."""
    options = _parser().parse_args(arguments)
    report = Report(sys.stderr, str(Path.cwd()), is_json=options.json)
    if options.name in kept.COMMANDS:
        return _kept_command(options, report)
    try:
        plan = _plan(options)
        if options.name == "attach":
            address = record.hub_address(options.run, Path.cwd())
    except UserError as e:
        report.notice("error", e.message, e.hint, e.code)
        return _USAGE
    if options.name == "attach":
        return asyncio.run(_run(lambda: Attached(plan, address, report), report))
    found = shutil.which(plan.command[0])
    if found is None:
        is_there = Path(plan.command[0]).exists()
        what = "cannot be executed" if is_there else "is not a command"
        shell = "bash" if plan.command[0].endswith(".sh") else "python"
        hint = f"Did you mean: {shell} {plan.command[0]}?" if is_there else "Is it on PATH?"
        report.notice("error", f"'{plan.command[0]}' {what}.", hint, "no-such-program")
        return NOT_EXECUTABLE if is_there else NOT_FOUND
    return asyncio.run(_run(lambda: Terminal(plan, report), report))


def _kept_command(options: argparse.Namespace, report: Report) -> int:
    try:
        code = kept.COMMANDS[options.name](options, Path.cwd(), sys.stdout)
        sys.stdout.flush()
    except UserError as e:
        report.notice("error", e.message, e.hint, e.code)
        return _USAGE
    except BrokenPipeError:  # whoever read it, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for Python's own flush at the end
        return 128 + signal.SIGPIPE
    return code


async def _run(terminal: Callable[[], Terminal], report: Report) -> int:
    try:
        return await terminal().run()
    except UserError as e:
        report.notice("error", e.message, e.hint, e.code)
        return OWN_FAILURE


def _plan(options: argparse.Namespace) -> Plan:
    """What was asked for, checked. Raises :class:`UserError`."""
    cwd = Path.cwd()
    points = [parse_breakpoint(text, cwd) for text in options.breaks]
    points += [parse_logpoint(text, cwd) for text in options.logs]
    for expression in options.prints:
        compile_expression("Print expression", expression.strip())
    if options.name == "attach":
        return Plan([], str(cwd), points, options.prints, timeout=options.timeout)
    if options.ranks is not None:
        RankSet.parse(options.ranks)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise UserError("nothing-to-run", "There is no command to run.", "Write it after '--': -- python train.py")
    return Plan(command, str(cwd), points, options.prints, options.ranks or "", options.timeout)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rankscope", description="Debug all ranks of a training job as one job.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="name")
    run = commands.add_parser(
        "run",
        help="run a job in this terminal and look into the ranks you choose",
        description="Run a job in this terminal. At each breakpoint print the rank, its stack and values, and go on.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_options(run)
    run.add_argument("--ranks", metavar="RANKS", help="only these ranks may stop")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="the job, as you would type it")
    attach = commands.add_parser(
        "attach",
        help="look into a job that 'rankscope run' or an editor has started",
        description="Set breakpoints in a job that runs already; at its end, or at Ctrl-C, the job is left as it was.",
    )
    _add_options(attach)
    attach.add_argument(
        "run",
        nargs="?",
        default="",
        metavar="RUN",
        help="a folder in .rankscope/runs or a hub's address; by default the newest run from this folder",
    )
    kept.add_commands(commands)
    return parser


def _add_options(run: argparse.ArgumentParser) -> None:
    run.add_argument(
        "--break", dest="breaks", action="append", default=[], metavar="'FILE:LINE[@RANKS][ if EXPR]'", help="stop here"
    )
    run.add_argument(
        "--log",
        dest="logs",
        action="append",
        default=[],
        metavar="'FILE:LINE[@RANKS]: text {expr}'",
        help="print this each time the line is reached, without a stop",
    )
    run.add_argument(
        "--print", dest="prints", action="append", default=[], metavar="EXPR", help="show this value at each stop"
    )
    run.add_argument("--json", action="store_true", help="one JSON object a line instead of text")
    run.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="end after so long")


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of seconds above 0")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
