"""The one exception that reaches a person.

::

    Exception
      UserError            code, message, hint: shown as it stands
        RankSetError       a rank set that cannot be read; points at the place
        LocationError      a FILE:LINE location that cannot be read
"""

from __future__ import annotations


class UserError(Exception):
    """Something a person can mend.

    ``code`` is a stable kebab-case word listed in the README, ``message`` one
    sentence that says what is wrong, ``hint`` one that says how to mend it.
    """

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class RankSetError(UserError):
    """A rank set that cannot be read. ``text`` is the whole, ``at`` the offset of the fault."""

    def __init__(self, text: str, at: int, why: str) -> None:
        super().__init__(
            "bad-rank-set",
            f"Rank set '{text}': {why} at column {at + 1}.",
            "Write all, 0, 0,3-5, 0-31:4, local:0, node:1, actor/0-3 or driver.",
        )
        self.text = text
        self.at = at


class LocationError(UserError):
    """A breakpoint location that cannot be read."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(
            "bad-location",
            f"Location '{text}': {why}.",
            "Write FILE:LINE, FILE:LINE@RANKS or FILE:LINE@RANKS if EXPR.",
        )
