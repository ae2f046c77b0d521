"""How debugpy's variables, hovers and console show tensors, arrays, tables, batches and what holds them.

These are providers for pydevd's plugin folder, ``plugins/pydevd_plugins/extensions``. A provider that does not know a
value answers ``None``, and debugpy shows it as ever. None of them raises: debugpy would call the value's own ``repr``.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from rankscope.agent import expansion, tensors
from rankscope.agent.holders import holder_line, prints_parts
from rankscope.tensors.kinds import kind_of_class

_LISTED_SECONDS = 0.4  # debugpy complains about what takes half a second
_BURST_SECONDS = 1.5
_BURST_ENDS = 0.5

Contents = expansion.Contents


class Budget:
    """The time for the values of one list of variables: the first get most of it, the last at least a glance."""

    def __init__(self) -> None:
        self._spent = 0.0
        self._last = 0.0

    def seconds(self) -> float:
        """What the next value may take."""
        now = time.monotonic()
        if now - self._last > _BURST_ENDS:
            self._spent = 0.0
        self._last = now
        return max(0.0, min(_LISTED_SECONDS, (_BURST_SECONDS - self._spent) / 3))

    def spent(self) -> None:
        """A value has been read."""
        now = time.monotonic()
        self._spent += now - self._last
        self._last = now


class ArrayPresentation:
    """One line and the parts of everything that :mod:`rankscope.tensors.kinds` knows."""

    def __init__(self) -> None:
        self._budget = Budget()

    def can_provide(self, type_object: Any, type_name: str) -> bool:
        """Whether values of that class may be shown here."""
        del type_name
        return isinstance(type_object, type) and bool(kind_of_class(type_object))

    def get_str(self, value: Any) -> str | None:
        """The line in a list of variables, where many values share the time."""
        try:
            line = tensors.text(value, self._budget.seconds()) or None
            self._budget.spent()
        except Exception as e:
            return f"<{type(value).__name__}: {type(e).__name__} while it was looked at>"
        return line

    def get_str_in_context(self, value: Any, context: str) -> str | None:
        """The line where one value was asked for: watch, hover, console, clipboard."""
        del context
        try:
            return tensors.text(value) or None
        except Exception as e:
            return f"<{type(value).__name__}: {type(e).__name__} while it was looked at>"

    def get_contents_debug_adapter_protocol(self, value: Any, fmt: dict[str, Any] | None = None) -> Contents:
        """The parts: name, value, and what to add to the value's own expression."""
        try:
            parts = expansion.parts(value)
        except Exception as e:
            return [("(cannot be unfolded)", f"{type(e).__name__}: {e}"[:200], None)]
        if parts is not None:
            return parts
        default: Any = sys.modules["_pydevd_bundle.pydevd_resolver"].defaultResolver
        found: Contents = default.get_contents_debug_adapter_protocol(value, fmt=fmt)
        return found

    def get_dictionary(self, value: Any) -> dict[str, Any]:
        """The parts by name."""
        return {name: part for name, part, _ in self.get_contents_debug_adapter_protocol(value)}

    def resolve(self, value: Any, attribute: str) -> Any:
        """A part by its name."""
        return self.get_dictionary(value)[attribute]


class PagePresentation:
    """A run of rows that unfolds by itself."""

    def can_provide(self, type_object: Any, type_name: str) -> bool:
        """Whether it is a page."""
        del type_name
        return type_object is expansion.Page

    def get_str(self, page: expansion.Page) -> str:
        """How many rows it holds."""
        return f"{page.stop - page.start:,} rows"

    def get_contents_debug_adapter_protocol(self, page: expansion.Page, fmt: Any = None) -> Contents:
        """Its rows, or pages of them."""
        del fmt
        try:
            return page.contents()
        except Exception as e:
            return [("(cannot be read)", f"{type(e).__name__}: {e}"[:200], None)]

    def get_dictionary(self, page: expansion.Page) -> dict[str, Any]:
        """Its rows by name."""
        return {name: part for name, part, _ in self.get_contents_debug_adapter_protocol(page)}

    def resolve(self, page: expansion.Page, attribute: str) -> Any:
        """A row by its name."""
        return self.get_dictionary(page)[attribute]


class HolderPresentation:
    """The line of a container, dataclass or namedtuple with tensors in it, which their own ``repr`` would print."""

    def can_provide(self, type_object: Any, type_name: str) -> bool:
        """Whether its ``repr`` is Python's own and prints what it holds."""
        del type_name
        return isinstance(type_object, type) and prints_parts(type_object)

    def get_str(self, value: Any) -> str | None:
        """The line when there is a tensor in it, else ``None``."""
        try:
            return holder_line(value)
        except Exception:  # changed by another thread meanwhile
            return None


def take_precedence(plugin: str) -> None:
    """Let this plugin answer before debugpy's own for numpy and pandas, which print values."""
    manager: Any = getattr(sys.modules.get("_pydevd_bundle.pydevd_extension_utils"), "EXTENSION_MANAGER_INSTANCE", None)
    loaded = getattr(manager, "loaded_extensions", None)
    if isinstance(loaded, list):
        loaded.insert(0, sys.modules[plugin])
