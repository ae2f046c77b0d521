"""Texts of a job's own, made safe for a terminal and a list: no colours, no control characters."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)


def without_escapes(text: str) -> str:
    """The text without terminal escapes and control characters; lines and tabs stay."""
    return _ESCAPES.sub("", text)
