"""What several files of end-to-end tests need."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from support.runs import python


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
