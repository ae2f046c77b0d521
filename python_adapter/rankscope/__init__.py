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

__all__ = ["UserError", "__version__", "conditional_breakpoint"]
__version__ = "0.1.0"

# A packaged extension brings debugpy and msgpack along; what the job's own Python has of them comes first.
_BUNDLED = f"{__path__[0]}{os.sep}bundled"
if _BUNDLED not in sys.path and os.path.isdir(_BUNDLED):  # noqa: PTH112 - pathlib costs every process of the job 5 ms
    sys.path.append(_BUNDLED)


def __getattr__(name: str) -> Any:
    """Load what runs in a training process only there: the hub and the command line never import the agent."""
    if name == "conditional_breakpoint":
        from rankscope.agent.breaks import conditional_breakpoint

        return conditional_breakpoint
    raise AttributeError(f"module 'rankscope' has no attribute '{name}'")
