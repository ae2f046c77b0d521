"""What happens around an import: hooks after a module is loaded, no tracing while a heavy package loads.

One finder, first on ``sys.meta_path``, serves both. It replaces no loader: it lends the
loader's ``exec_module`` a wrapper for that one import.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Hook = Callable[[ModuleType], None]

# debugpy replaces sys.settrace by one that warns: keep Python's own.
_settrace = sys.settrace
_PACKAGE_FOLDERS = ("/site-packages/", "/dist-packages/")


class _Finder(MetaPathFinder):
    """Finds nothing by itself; wraps the execution of modules that somebody waits for."""

    def __init__(self) -> None:
        self.hooks: dict[str, list[Hook]] = {}
        self.traced_files: list[str] = []
        self.releases = 0

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_awaited = fullname in self.hooks
        is_heavy = path is None and sys.gettrace() is not None
        if not is_awaited and not is_heavy:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                self._wrap(spec, fullname, is_quiet=is_heavy and self._is_untraced(spec))
                return spec
        return None

    def _is_untraced(self, spec: ModuleSpec) -> bool:
        """Whether the package is an installed one that holds no breakpoint."""
        origin = spec.origin or ""
        if not any(folder in origin for folder in _PACKAGE_FOLDERS):
            return False
        folder = os.path.realpath(os.path.dirname(origin) if spec.submodule_search_locations else origin)
        return not any(file.startswith(folder) for file in self.traced_files)

    def _wrap(self, spec: ModuleSpec, name: str, *, is_quiet: bool) -> None:
        loader: Any = spec.loader
        run = getattr(loader, "exec_module", None)
        if run is None or (not is_quiet and name not in self.hooks):
            return

        def exec_module(module: ModuleType) -> None:
            with contextlib.suppress(AttributeError):
                del loader.exec_module
            if is_quiet:
                with tracing_off():
                    run(module)
            else:
                run(module)
            for hook in self.hooks.pop(name, ()):
                _call(hook, module)

        with contextlib.suppress(AttributeError):  # a loader without attributes of its own
            loader.exec_module = exec_module


_finder = _Finder()


def install() -> None:
    """Put the finder first; again is harmless."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def after_import(name: str, hook: Hook) -> None:
    """Call ``hook(module)`` once, when the module has been loaded; at once if it is. Errors stay here."""
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        _call(hook, module)
        return
    _finder.hooks.setdefault(name, []).append(hook)


def keep_traced(files: list[str]) -> None:
    """Packages that hold one of these files are traced while they load: they have breakpoints."""
    _finder.traced_files = [os.path.realpath(file) for file in files]


@contextlib.contextmanager
def tracing_off() -> Iterator[None]:
    """Run a block of this thread without the debugger's trace function. Nests."""
    trace = sys.gettrace()
    if trace is None:
        yield
        return
    releases = _finder.releases
    _settrace(None)
    try:
        yield
    finally:
        # A disarm meanwhile cleared the whole process; do not bring the debugger back then.
        if sys.gettrace() is None and releases == _finder.releases:
            _settrace(trace)


def on_released() -> None:
    """The member was disarmed: what is loading now is not traced again afterwards."""
    _finder.releases += 1


def _call(hook: Hook, module: ModuleType) -> None:
    try:
        hook(module)
    except Exception as e:
        if os.environ.get("RANKSCOPE_DEBUG"):
            os.write(2, f"rankscope: hook after import of {module.__name__}: {e!r}\n".encode())
