"""What this adapter says of itself, and the shape of a failure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankscope.errors import UserError


class DapError(Exception):
    """A request failed. The text is what a person reads; ``code`` a word for programs, maybe empty."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


EXCEPTION_CONDITION = "Exception names, such as ValueError, KeyError; a rank set may follow: ValueError  # @actor/0"

BARRIER_MODE = "barrier"
BREAKPOINT_MODES = {"all": "all", "rank0": "0", "firstOfNode": "local:0", BARRIER_MODE: "all"}

CAPABILITIES: dict[str, Any] = {
    "supportsConfigurationDoneRequest": True,
    "supportsFunctionBreakpoints": True,
    "supportsConditionalBreakpoints": True,
    "supportsHitConditionalBreakpoints": True,
    "supportsLogPoints": True,
    "supportsEvaluateForHovers": True,
    "supportsClipboardContext": True,
    "supportsSetVariable": True,
    "supportsSetExpression": True,
    "supportsGotoTargetsRequest": True,
    "supportsStepInTargetsRequest": True,
    "supportsCompletionsRequest": True,
    "supportsModulesRequest": True,
    "supportsExceptionInfoRequest": True,
    "supportsExceptionFilterOptions": True,
    "supportsValueFormattingOptions": True,
    "supportsDelayedStackTraceLoading": True,
    "supportsRestartRequest": True,
    "supportsTerminateRequest": True,
    "supportTerminateDebuggee": True,
    "supportsCancelRequest": True,
    "exceptionBreakpointFilters": [
        {
            "filter": name,
            "label": label,
            "description": description,
            "default": default,
            "supportsCondition": True,
            "conditionDescription": EXCEPTION_CONDITION,
        }
        for name, label, description, default in (
            ("raised", "Raised Exceptions", "Stop where an exception is raised. Arms the ranks concerned.", False),
            ("uncaught", "Uncaught Exceptions", "Stop where nothing catches it. Arms nothing by itself.", True),
            ("userUnhandled", "User Uncaught Exceptions", "Stop where it leaves your code. Slows armed ranks.", False),
        )
    ],
    "breakpointModes": [
        {"mode": "all", "label": "All ranks", "appliesTo": ["source", "exception"]},
        {"mode": "rank0", "label": "Rank 0", "appliesTo": ["source", "exception"]},
        {"mode": "firstOfNode", "label": "First rank of each node", "appliesTo": ["source", "exception"]},
        {
            "mode": BARRIER_MODE,
            "label": "Barrier",
            "description": "Hold each rank that gets there until all of its set have, then stop once.",
            "appliesTo": ["source"],
        },
    ],
}


SHOW_LOG = {"url": "command:rankscope.showLog", "urlLabel": "Show log"}
"""What makes an error's toast in VS Code carry a button; only our own extension has that command."""


def error_body(error: Exception, link: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The ``body`` of a failed response. A :class:`UserError` is shown to the person as it stands."""
    is_for_person = isinstance(error, UserError)
    code = error.code if isinstance(error, (UserError, DapError)) else ""
    return {"error": {"id": 1, "format": str(error), "showUser": is_for_person, "code": code, **(link or {})}}


def failure_of(response: dict[str, Any]) -> DapError:
    """The error of a failed response: the full text where it is given, else the short one."""
    error = (response.get("body") or {}).get("error") or {}
    text = str(error.get("format") or response.get("message") or f"'{response.get('command')}' failed")
    for name, value in (error.get("variables") or {}).items():
        text = text.replace("{" + name + "}", str(value))
    return DapError(text, str(error.get("code") or ""))
