"""What is installed is what is in the tree: the tests' editable install cannot show a file that the wheel lacks."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ADAPTER = Path(__file__).parents[3] / "python_adapter"


def test_the_wheel_holds_every_file_and_the_command(tmp_path: Path) -> None:
    # From a copy: a build leaves folders behind whose old content would find its way into the next wheel.
    tree = shutil.copytree(
        ADAPTER, tmp_path / "tree", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__", ".*_cache")
    )
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(tree),
    ]
    built = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert built.returncode == 0, built.stderr

    with zipfile.ZipFile(next(tmp_path.glob("rankscope-*.whl"))) as wheel:
        names = set(wheel.namelist())
        scripts = wheel.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
    wanted = {path.relative_to(tree).as_posix() for path in (tree / "rankscope").rglob("*") if path.is_file()}
    assert {name for name in names if name.startswith("rankscope/")} == wanted
    assert "rankscope = rankscope.cli:main" in scripts
