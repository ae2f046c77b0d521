"""Reports of checks as they cross to a test's process."""

from __future__ import annotations

from typing import Any

from rankscope import SyncReport


def summary(report: SyncReport) -> dict[str, Any]:
    """What crosses to the test's process."""
    return {
        "ok": report.ok,
        "rank": report.rank,
        "is_deviating": report.is_deviating,
        "is_bitwise": report.is_bitwise,
        "skipped": dict(report.skipped),
        "compared": report.compared,
        "alone": report.alone,
        "text": report.text,
        "differences": {
            each.name: {
                "what": each.what,
                "deviating": each.deviating,
                "is_tie": each.is_tie,
                "max": each.max_abs,
                "first": each.first_index,
                "max_index": each.max_index,
                "beyond": each.beyond,
                "differing": each.differing,
                "count": each.count,
                "values": {rank: str(value) for rank, value in each.values.items()},
            }
            for each in report.differences
        },
    }


def agreed(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """The report, which every rank has alike."""
    own = ("rank", "is_deviating")
    first = {key: value for key, value in answers[0].items() if key not in own}
    for answer in answers:
        assert {key: value for key, value in answer.items() if key not in own} == first
        deviating = {rank for each in answer["differences"].values() for rank in each["deviating"]}
        assert answer["is_deviating"] == (answer["rank"] in deviating)
    return first
