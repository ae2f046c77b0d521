"""The check of launch.json's ``syncCheck``: hooked to every optimizer's step, by torch's public hook.

What compares is loaded at the first step.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from rankscope.agent import imports

_settings: Mapping[str, Any] = {}
_checks: Any = None


def install(settings: Mapping[str, Any]) -> None:
    """Compare as these settings say, where they are on."""
    global _settings
    _settings = settings
    if settings.get("isOn"):
        imports.after_import("torch.optim.optimizer", _hook_steps)
        if settings.get("batches"):
            imports.after_import("torch.utils.data.dataloader", _hook_batches)


def forget() -> None:
    """In a forked child: it steps no optimizer of its parent's."""
    global _settings
    _settings = {}


def _hook_steps(module: ModuleType) -> None:
    module.register_optimizer_step_post_hook(_after_step)


def _after_step(optimizer: Any, _args: Any, _kwargs: Any) -> None:
    if not _settings or _is_compiling():
        return
    _zero_code().after_step(optimizer, sys._getframe(1))


def _is_compiling() -> bool:
    compiler: Any = sys.modules.get("torch.compiler")
    return compiler is not None and bool(compiler.is_compiling())


def _zero_code() -> Any:
    global _checks
    if _checks is None:
        from rankscope.checks.zero_code import ZeroCode

        _checks = ZeroCode(_settings)
    return _checks


def _hook_batches(module: ModuleType) -> None:
    iterator: Any = module._BaseDataLoaderIter
    own = iterator.__next__

    @functools.wraps(own)
    def following(self: Any) -> Any:
        batch = own(self)
        if _settings and "torch.distributed" in sys.modules:
            _zero_code().read(batch)
        return batch

    iterator.__next__ = following
