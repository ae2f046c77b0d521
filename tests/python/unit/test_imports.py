"""Hooks after an import, and imports without tracing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

from rankscope.agent import imports


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    imports.install()
    yield folder
    imports.keep_traced([])
    for name in ("heavy_one", "awaited_one"):
        sys.modules.pop(name, None)


def test_hooks_run_once_after_the_module_is_loaded_and_may_fail(packages: Path) -> None:
    (packages / "awaited_one.py").write_text("value = 1")
    seen: list[Any] = []

    def fails(module: ModuleType) -> None:
        raise ValueError(module)

    imports.after_import("awaited_one", fails)
    imports.after_import("awaited_one", lambda module: seen.append(module.value))
    module = importlib.import_module("awaited_one")
    assert seen == [1]
    assert "exec_module" not in vars(module.__loader__)
    imports.after_import("awaited_one", seen.append)
    assert seen == [1, module]
    importlib.reload(module)
    assert len(seen) == 2


@pytest.mark.parametrize("has_breakpoint", [False, True])
def test_a_heavy_package_loads_untraced_unless_it_has_a_breakpoint(packages: Path, has_breakpoint: bool) -> None:
    file = packages / "heavy_one.py"
    file.write_text("import sys\ndef f(): return sys.gettrace()\ntrace = f()\n")
    if has_breakpoint:
        imports.keep_traced([str(file)])
    before = sys.gettrace()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        return None

    sys.settrace(trace)
    try:
        module = importlib.import_module("heavy_one")
        assert sys.gettrace() is trace
    finally:
        sys.settrace(before)
    assert (module.trace is trace) == has_breakpoint


def test_a_disarm_during_the_import_is_not_undone() -> None:
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        with imports.tracing_off():
            imports.on_released()
        assert sys.gettrace() is None
    finally:
        sys.settrace(before)
