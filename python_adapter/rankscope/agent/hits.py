"""Hit counts of breakpoints, kept in the member where they are counted.

A breakpoint's condition calls :func:`counts` once everything else in it holds.
"""

from __future__ import annotations

import operator
from collections import defaultdict

_counts: defaultdict[str, int] = defaultdict(int)
_compare = {"==": operator.eq, ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


def counts(key: str, how: str, number: int) -> bool:
    """Count one hit of the breakpoint ``key``; whether it is one to stop at."""
    _counts[key] += 1
    hits = _counts[key]
    return hits % number == 0 if how == "%" else bool(_compare[how](hits, number))
