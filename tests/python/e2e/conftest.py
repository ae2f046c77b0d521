"""What several files of end-to-end tests need."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from support.gloo_ranks import GlooRanks, gloo_ranks
from support.runs import python


@pytest.fixture(scope="module")
def ranks() -> Iterator[GlooRanks]:
    """Eight ranks over gloo that run what a test gives them."""
    with gloo_ranks(8) as started:
        yield started


@pytest.fixture(scope="session")
def uv_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """``uv run`` with this Python, its own program from PATH or installed beside the tests."""
    uv = shutil.which("uv")
    if uv is None:
        folder = tmp_path_factory.mktemp("uv")
        install = python("-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), "uv")
        done = subprocess.run(install, capture_output=True, text=True, timeout=60, check=False)
        uv = shutil.which("uv", path=str(folder / "bin"))
        if uv is None:
            pytest.skip(f"uv cannot be installed: {done.stderr.strip()[-200:]}")
    return uv, "run", "--offline", "--no-project", "--python", sys.executable
