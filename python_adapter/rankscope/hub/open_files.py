"""How many files the hub may hold open: it needs a socket per agent, and the usual limit is 1,024."""

from __future__ import annotations

import contextlib
import resource

_WANTED = 65_536
_FOR_OURSELVES = 64

inherited, _most = resource.getrlimit(resource.RLIMIT_NOFILE)
"""The limit that we were started with, and that the job gets."""


def raise_limit() -> None:
    """As far as this user may."""
    wanted = _WANTED if _most == resource.RLIM_INFINITY else min(_WANTED, _most)
    if inherited != resource.RLIM_INFINITY and inherited < wanted:
        with contextlib.suppress(OSError, ValueError):  # macOS has a lower limit of its own
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, _most))


def room() -> int:
    """How many agents can be connected."""
    now, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _WANTED if now == resource.RLIM_INFINITY else max(1, now - _FOR_OURSELVES)
