"""The check without a line of code: after every optimizer's step, of what the ranks showed to have alike at first.

Nothing here raises into the program. Where ranks do not come along, it is said once, and that optimizer is let alone.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import weakref
from collections.abc import Mapping
from types import FrameType
from typing import Any

from rankscope.checks import tell
from rankscope.checks.exchange import Exchange, Missing
from rankscope.checks.fingerprint import whole
from rankscope.checks.learn import Learned, learn
from rankscope.checks.sources import WHAT, Sources
from rankscope.checks.structure import entries
from rankscope.checks.sync import Place
from rankscope.checks.sync_checker import SyncChecker, batch_digest
from rankscope.errors import UserError

_TIMEOUT = 60.0
_HELD = "_rankscope_sync_check"


class ZeroCode:
    """The checkers of this process's optimizers, in the order of their first steps.

    ``settings`` are as launch.json's ``syncCheck``, but that ``bisect`` is a pair of steps, or nothing.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._watched: weakref.WeakSet[_Watched] = weakref.WeakSet()
        self._numbers = itertools.count()
        self.batch = ""

    def after_step(self, optimizer: Any, frame: FrameType | None) -> None:
        """An optimizer has stepped in this frame."""
        watched = vars(optimizer).get(_HELD)
        if watched is None:  # held by the optimizer itself, so that both go together; no state_dict or copy has it
            watched = vars(optimizer)[_HELD] = _Watched(optimizer, next(self._numbers), self._settings)
            self._watched.add(watched)
        watched.step(frame, self.batch)

    def wants_batch(self) -> bool:
        """Whether the step to come is one whose batch is compared."""
        if not self._settings.get("batches"):
            return False
        return not self._watched or any(watched.is_next_due() for watched in self._watched)

    def read(self, batch: Any) -> None:
        """A data loader gave this."""
        if self.wants_batch():
            self.batch = batch_digest(batch)


class _Watched:
    """One optimizer."""

    def __init__(self, optimizer: Any, number: int, settings: Mapping[str, Any]) -> None:
        self._optimizer, self._number, self._settings = optimizer, number, settings
        self._checker: SyncChecker | None = None
        self._is_off = False
        self._steps = 0

    def is_next_due(self) -> bool:
        return not self._is_off and (self._checker is None or self._checker.is_due(self._steps + 1))

    def step(self, frame: FrameType | None, batch: str) -> None:
        if self._is_off:
            return
        self._steps += 1
        checker = self._checker
        if checker is not None and not checker.is_due(self._steps):
            return
        place = _place(frame)
        try:
            if checker is None:
                checker = self._begin(place)
                if checker is None:
                    return
            checker.steps = self._steps
            checker.check(place, batch)
        except UserError as e:
            self._end(e.message if isinstance(e, Missing) else str(e))
        except Exception as e:
            self._end(f"it failed: {type(e).__name__}: {e}")

    def _end(self, why: str) -> None:
        self._is_off = True
        self._checker = None
        tell.notice("warning", f"the sync check of {type(self._optimizer).__name__} ends: {why}")

    def _begin(self, place: Place) -> SyncChecker | None:
        """Look which ranks have what alike; ``None`` where there is nobody to compare with (yet)."""
        distributed: Any = sys.modules.get("torch.distributed")
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            self._steps = 0
            return None
        timeout = self._settings.get("timeout") or _TIMEOUT
        sources = Sources.of_optimizer(self._optimizer)
        name = type(self._optimizer).__name__ + (f" {self._number + 1}" if self._number else "")
        checker = SyncChecker(
            sources,
            self._settings.get("interval"),
            what=self._settings.get("what") or WHAT,
            tolerance=self._settings.get("tolerance", 0.0),
            group=sources.group(),
            bisect=self._settings.get("bisect"),
            batches=self._settings.get("batches"),
            timeout=timeout,
            operation_name=name,
        )
        exchange = Exchange(sources.group(), timeout)
        if exchange.size == 1:
            self._is_off = True
            return None
        checker.learned = self._learn(exchange, sources, checker, name, is_ddp=sources.group() is not None, place=place)
        if len(checker.learned.ranks) == 1:
            self._end("this rank has parameters that no other has")
            return None
        self._checker = checker
        return checker

    def _learn(
        self, exchange: Exchange, sources: Sources, checker: SyncChecker, name: str, *, is_ddp: bool, place: Place
    ) -> Learned:
        families = sources.families(checker.what)
        post = {
            "families": {family: whole(entries(tensors)) for family, tensors in families.items()},
            "groups": _known_groups(),
        }

        numbers = {rank: at for at, rank in enumerate(exchange.ranks)}

        def decide(posts: list[Any]) -> list[dict[str, Any]]:
            known = (group for each in posts for group in each["groups"])
            groups = {tuple(numbers[rank] for rank in group if rank in numbers) for group in known}
            return [vars(each) for each in learn([each["families"] for each in posts], groups)]

        learned = Learned(**exchange.round(post, decide, f"the first check of {name}")[exchange.rank])
        learned.ranks = [exchange.ranks[at] for at in learned.ranks]
        if is_ddp and learned.left_out:  # DDP says that they are alike
            learned.left_out = [each for each in learned.left_out if each not in {"parameters", "gradients"}]
        self._tell_left_out(learned, exchange, checker, name, place)
        return learned

    def _tell_left_out(
        self, learned: Learned, exchange: Exchange, checker: SyncChecker, name: str, place: Place
    ) -> None:
        if len(learned.ranks) == 1 or exchange.rank != 0:
            return
        plain = [each for each in learned.left_out if not each.startswith("rng") and each in checker.what]
        if plain:
            where = f"{place[0].rpartition('/')[2]}:{place[1]}"
            text = f"no {' and no '.join(plain)} of {name} ({where}) are equal on any two ranks at its first step"
            tell.notice("warning", f"sync check: {text}: taken as meant to differ, and not compared")


def _known_groups() -> list[list[int]]:
    """The global ranks of every process group of this process."""
    module: Any = sys.modules["torch.distributed.distributed_c10d"]
    found = []
    for group in list(module._world.pg_map):
        with contextlib.suppress(Exception):  # a group that is being destroyed
            found.append(sorted(module.get_process_group_ranks(group)))
    return found


def _place(frame: FrameType | None) -> Place:
    """The person's line that stepped."""
    from rankscope.agent import stacks

    innermost = frame
    while frame is not None and not stacks.is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    frame = frame or innermost
    return ("", 0, "") if frame is None else (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
