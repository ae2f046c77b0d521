"""The libraries that a packaged extension brings along: used only where the job's Python lacks them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import rankscope

SAY_WHERE = """
import sys
sys.path.insert(0, sys.argv[1])
for folder in sys.argv[2:]:
    sys.path.append(folder)
import rankscope, msgpack
print(msgpack.WHO)
"""


def library(folder: Path, who: str) -> Path:
    (folder / "msgpack").mkdir(parents=True)
    (folder / "msgpack" / "__init__.py").write_text(f"WHO = {who!r}\n")
    return folder


def who(*folders: Path) -> str:
    argv = [sys.executable, "-S", "-c", SAY_WHERE, *map(str, folders)]  # -S: without what is installed
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_they_are_found_where_the_python_has_none(tmp_path: Path) -> None:
    shutil.copytree(Path(rankscope.__file__).parent, tmp_path / "python" / "rankscope")
    library(tmp_path / "python" / "rankscope" / "bundled", "bundled")
    assert who(tmp_path / "python") == "bundled"
    assert who(tmp_path / "python", library(tmp_path / "installed", "installed")) == "installed"
