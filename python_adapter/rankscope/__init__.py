"""RankScope: debug all ranks of a distributed training job as one job.

The public API is what this module names; everything else is private.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from rankscope.errors import UserError

if TYPE_CHECKING:
    from rankscope.agent.breaks import conditional_breakpoint
    from rankscope.checks.report import SyncReport, TensorsDiffer
    from rankscope.checks.sync import verify_distributed_tensors
    from rankscope.checks.sync_checker import SyncChecker

__all__ = [
    "SyncChecker",
    "SyncReport",
    "TensorsDiffer",
    "UserError",
    "__version__",
    "conditional_breakpoint",
    "verify_distributed_tensors",
]
__version__ = "0.1.0"

# A packaged extension brings debugpy and msgpack along; what the job's own Python has of them comes first.
_BUNDLED = f"{__path__[0]}{os.sep}bundled"
if _BUNDLED not in sys.path and os.path.isdir(_BUNDLED):  # noqa: PTH112 - pathlib costs every process of the job 5 ms
    sys.path.append(_BUNDLED)


_LAZY = {
    "SyncChecker": "rankscope.checks.sync_checker",
    "SyncReport": "rankscope.checks.report",
    "TensorsDiffer": "rankscope.checks.report",
    "conditional_breakpoint": "rankscope.agent.breaks",
    "verify_distributed_tensors": "rankscope.checks.sync",
}


def __getattr__(name: str) -> Any:
    """Load what runs in a training process only there: the hub and the command line never import the agent."""
    if name not in _LAZY:
        raise AttributeError(f"module 'rankscope' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)
