"""A failure, and the episode it belongs to: a first failure and those that follow from it.

Peers whose connection closed follow, a launcher that ends the rest, what Ray or torch tell a driver.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankscope.escapes import without_escapes

if TYPE_CHECKING:
    from rankscope.hub.member import Member

# What a process says when it lost another one: whatever its clock says, that was not the first failure.
_FOLLOWS = re.compile(
    r"connection (was )?(closed|reset|refused)|closed by (the )?(remote )?peer|broken pipe|socket closed"
    r"|remote process exited|network error|DataLoader worker .* (exited|killed)|killed by SIGTERM",
    re.IGNORECASE,
)


@dataclass
class Failure:
    """One failure. ``at`` is the hub's clock (Unix time) when it was raised; ``about`` comes from the agent."""

    member: Member
    at: float
    about: dict[str, Any]

    @property
    def text(self) -> str:
        """One line for people: who, what, where."""
        place = Path(str(self.about.get("path", ""))).name
        where = f" at {place}:{self.about.get('line')} in {self.about.get('name')}" if place else ""
        return without_escapes(f"{self.member.label}: {self.about.get('text')}{where}")

    @property
    def is_own(self) -> bool:
        """Whether by all that it says it is no consequence of another's."""
        return not self.about.get("isEcho") and not _FOLLOWS.search(
            f"{self.about.get('text')} {self.about.get('message')}"
        )


@dataclass
class Episode:
    """A first failure, what followed from it, and the dumps that were kept."""

    number: int
    failures: list[Failure] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)
    members: set[str] = field(default_factory=set)
    late: list[str] = field(default_factory=list)
    has_cause: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def first(self) -> Failure:
        """The one that was raised first, of those that do not merely tell of another or follow from it."""
        own = [failure for failure in self.failures if failure.is_own]
        others = [failure for failure in self.failures if not failure.about.get("isEcho")]
        return min(own or others or self.failures, key=lambda failure: failure.at)

    @property
    def latest(self) -> float:
        """When it was heard of last."""
        return max((failure.at for failure in self.failures), default=float("-inf"))
