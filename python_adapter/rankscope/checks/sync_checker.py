"""A check of what ought to be the same on all ranks, every so many steps, and where it began to differ."""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rankscope.checks import in_flight, tell
from rankscope.checks.exchange import Exchange
from rankscope.checks.fingerprint import line
from rankscope.checks.learn import Learned
from rankscope.checks.locate import Rules
from rankscope.checks.plan import grouped
from rankscope.checks.replicas import ALONE
from rankscope.checks.report import BISECT_VARIABLE, SyncReport, TensorDifference, rank_set
from rankscope.checks.sources import WHAT, Sources
from rankscope.checks.structure import Entry, entries
from rankscope.checks.sync import Place, act, check_arguments, compare
from rankscope.errors import UserError

INTERVAL = 100
INTERVAL_VARIABLE = "SYNC_CHECK_INTERVAL"
BATCHES = ("different", "same")
_KEPT = 4


class SyncChecker:
    """Compares a model, optimizer or tensors over the ranks at step 1 and every ``interval``-th :meth:`step`.

    ``model_or_tensors`` is a module, an optimizer, a list of these, or tensors as
    :func:`rankscope.verify_distributed_tensors` takes them. ``what`` chooses among ``parameters``, ``buffers``,
    ``gradients``, ``optimizer`` and ``rng``. ``interval`` is by default ``SYNC_CHECK_INTERVAL``, else 100.
    ``bisect=(good, bad)``, or ``SYNC_CHECK_BISECT=good-bad``, has every step in between checked, too: a repeated run
    finds the first bad one. ``batches`` says whether the batches given to :meth:`step` are to be ``different`` on each
    rank or the ``same``. Values are equal within ``tolerance``, by default when all bits are.

    ``last_good`` has the last few good steps, each with the digest; ``first_bad`` the step at which a difference was
    seen first. Raises :class:`UserError` ``bad-check``.
    """

    def __init__(
        self,
        model_or_tensors: Any,
        interval: int | None = None,
        *,
        what: Iterable[str] = ("parameters", "buffers", "optimizer"),
        tolerance: float = 0.0,
        group: Any = None,
        on_mismatch: str = "report",
        bisect: tuple[int, int] | None = None,
        batches: str | None = None,
        timeout: float = 60.0,
        operation_name: str = "SyncChecker",
    ) -> None:
        self.interval = _count(interval if interval is not None else os.environ.get(INTERVAL_VARIABLE) or INTERVAL)
        self.bisect = bisect if bisect is not None else _window(os.environ.get(BISECT_VARIABLE, ""))
        self.what = tuple(what)
        unknown = [word for word in self.what if word not in WHAT]
        if unknown or not self.what:
            raise UserError("bad-check", f"what has {unknown}.", f"It takes {', '.join(WHAT)}.")
        if batches is not None and batches not in BATCHES:
            raise UserError("bad-check", f"batches is {batches!r}.", f"It is one of {', '.join(BATCHES)}.")
        self._rules = Rules(tolerance)
        check_arguments(self._rules, on_mismatch, timeout)
        if "torch" not in sys.modules:
            raise UserError("not-tensors", "There is nothing to compare: torch is not loaded.")
        in_flight.watch()
        self.steps = self._checked = 0
        self.last_good: deque[tuple[int, str]] = deque(maxlen=_KEPT)
        self.first_bad: int | None = None
        self.learned: Learned | None = None
        self._sources = model_or_tensors if isinstance(model_or_tensors, Sources) else Sources.of(model_or_tensors)
        self._group, self._timeout, self._on_mismatch, self._batches = group, timeout, on_mismatch, batches
        self._name = operation_name
        self._known: dict[str, TensorDifference] = {}
        self._exchange: Exchange | None = None

    def is_due(self, step: int) -> bool:
        """Whether a step is one that is checked."""
        within = self.bisect is not None and self.bisect[0] <= step <= self.bisect[1]
        return step == 1 or step % self.interval == 0 or within

    def step(self, batch: Any = None) -> SyncReport | None:
        """Count a step and check it when it is due; ``None`` when it is not. To be called on all ranks alike.

        Raises what :func:`rankscope.verify_distributed_tensors` raises.
        """
        self.steps += 1
        if not self.is_due(self.steps):
            return None
        frame = sys._getframe(1)
        place = (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        report = self.check(place, "" if batch is None or self._batches is None else batch_digest(batch))
        if not report.ok:
            act(report, self._on_mismatch, frame, "SyncChecker.step()")
        return report

    def check(self, place: Place, batch: str = "") -> SyncReport:
        """Check now; ``batch`` is a digest, or empty. A difference is told to the hub, for the line ``place``."""
        exchange = self.exchange
        tag = f"{self._name} at step {self.steps}"
        error: UserError | None = None
        given: list[Entry] = []
        try:
            given = self.entries()
        except UserError as e:
            error = e
        report = compare(exchange, given, self._rules, tag, self._name, place, error=error, known=self._known)
        if self._batches is not None:
            report = self._compare_batches(report, exchange, batch, tag)
        before, self._checked = self._checked, self.steps
        if report.ok:
            self.last_good.append((self.steps, report.digest))
            self._known.clear()
            return report
        self.first_bad = self.first_bad or self.steps
        dated = tuple(each if each.since else replace(each, since=(before, self.steps)) for each in report.differences)
        self._known = {each.name: each for each in dated}
        report = replace(report, differences=dated)
        tell.divergence(report, place, step=self.steps)
        return report

    @property
    def exchange(self) -> Exchange:
        """With whom it is compared; made at the first check."""
        if self._exchange is None:
            self._exchange = Exchange(self._group, self._timeout)
            if self.learned is not None:
                self._exchange = self._exchange.among(self.learned.ranks)
        return self._exchange

    def entries(self) -> list[Entry]:
        """All that is compared at a step, sorted by name."""
        found: list[Entry] = []
        for family, tensors in self._sources.families(self.what).items():
            mine = entries(tensors.get("", tensors) if family == "tensors" else tensors)
            if self.learned is not None:
                for entry in mine:
                    entry.peers = self._learned_peers(family, entry)
            found += mine
        return sorted(found, key=lambda entry: entry.name)

    def _learned_peers(self, family: str, entry: Entry) -> str:
        assert self.learned is not None
        if family in self.learned.left_out:
            return ALONE
        return entry.peers or self.learned.peers.get(entry.name, "")

    def _compare_batches(self, report: SyncReport, exchange: Exchange, batch: str, tag: str) -> SyncReport:
        digests = exchange.round(batch, lambda posts: posts, f"{tag}, batches")
        if "" in digests:  # a rank has read none
            return report
        groups = grouped(dict(enumerate(digests)))
        is_same = self._batches == "same"
        if len(groups) == (1 if is_same else exchange.size):
            return report
        alike = [tuple(exchange.ranks[at] for at in group) for group in groups]
        majority = alike[0] if is_same else ()
        deviating = tuple(sorted(rank for group in alike for rank in group if is_same or len(group) > 1))
        if is_same:
            deviating = tuple(rank for rank in deviating if rank not in majority)
        text = "not the same batch as" if is_same else " and ".join(rank_set(g) for g in alike if len(g) > 1)
        difference = TensorDifference("batch", "batch", deviating, majority, values={deviating[0]: text})
        return replace(report, differences=(*report.differences, difference))


def batch_digest(batch: Any) -> str:
    """A digest of everything that can be read of a batch; empty when nothing can."""
    try:
        return repr(sorted(line(entries(batch))["roots"].items()))
    except UserError:
        return ""


def _count(value: Any) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.isdecimal() or int(text) < 1:
        raise UserError("bad-check", f"The interval is {value!r}.", "Give a number of steps of at least 1.")
    return int(text)


def _window(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    match = re.fullmatch(r"(\d+)-(\d+)", text)
    if match is None:
        raise UserError(
            "bad-check", f"{BISECT_VARIABLE} is '{text}'.", "Write the last good and the first bad step: 100-200."
        )
    return int(match[1]), int(match[2])
