"""Tells the hub what a check has found, where an agent is there to carry it."""

from __future__ import annotations

import sys
import time
from typing import Any

from rankscope.checks.report import SyncReport, rank_set

_MAX_TOLD = 20


def divergence(report: SyncReport, place: tuple[str, int, str], **details: Any) -> None:
    """A finding per tensor that differs, told once, by the group's first rank."""
    agent = _agent()
    if agent is None or report.rank != report.group[0]:
        return
    from rankscope.wire.messages import Diverged

    path, line, name = place
    for difference in report.differences[:_MAX_TOLD]:
        deviating = difference.deviating
        agent.send(
            Diverged(
                about={
                    "path": path,
                    "line": line,
                    "name": name,
                    "text": difference.text,
                    "message": report.operation_name,
                    "at": time.time(),
                    "ranks": list(deviating),
                    "places": [
                        {"rank": rank, "path": report.places[rank][0], "line": report.places[rank][1]}
                        for rank in deviating
                        if rank in report.places
                    ],
                    "details": {
                        "tensor": difference.name,
                        "what": difference.what,
                        "deviating": rank_set(deviating),
                        "max": difference.max_abs,
                        "first": list(difference.first_index or ()),
                        "lastGood": None if difference.since is None else difference.since[0],
                        "firstBad": None if difference.since is None else difference.since[1],
                        "more": max(0, len(report.differences) - _MAX_TOLD),
                        **details,
                    },
                }
            )
        )


def notice(level: str, text: str) -> None:
    """Say something to the person, through the hub where there is one."""
    agent = _agent()
    if agent is not None:
        agent.notice(level, text)
    else:
        print(f"rankscope: {text}", file=sys.stderr)  # noqa: T201 - the only way to a person here


def _agent() -> Any:
    return getattr(sys.modules.get("rankscope.agent.agent"), "current", None)
