"""Every command in the README runs, prints what the README shows, and every error code has its entry."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from support.runs import PACKAGE, environment

ROOT = PACKAGE.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
PROGRAMS = [text for kind, text in BLOCKS if kind == "python"]
SHOWN = next(text for kind, text in BLOCKS if kind == "text").splitlines()


def codes_in(tree: ast.AST) -> set[str]:
    """The codes of every UserError made in a module."""
    return {
        call.args[0].value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and call.args
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
        and re.fullmatch(r"[a-z]+(-[a-z]+)+", call.args[0].value)
        and _is_user_error(call.func)
    }


def _is_user_error(function: ast.expr) -> bool:
    named = isinstance(function, ast.Name) and function.id == "UserError"
    base = isinstance(function, ast.Attribute) and function.attr == "__init__"  # a kind of it, for itself
    return named or base


def test_every_error_code_has_an_entry() -> None:
    codes = set()
    for file in (PACKAGE / "rankscope").rglob("*.py"):
        codes |= codes_in(ast.parse(file.read_text()))
    section = README.partition("## When something is wrong")[2].partition("\n## ")[0]
    entries = set(re.findall(r"^\| `([a-z]+(?:-[a-z]+)+)` ", section, re.MULTILINE))
    assert codes == entries


def test_the_readme_names_every_option() -> None:
    help_text = subprocess.run(
        [sys.executable, "-m", "rankscope.cli", "run", "--help"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout
    assert set(re.findall(r"^  (--[a-z]+)", help_text, re.MULTILINE)) == set(
        re.findall(r"^\| `(--[a-z]+)", README, re.MULTILINE)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The README's programs, saved as it says."""
    where = tmp_path_factory.mktemp("readme")
    for name, text in zip(re.findall(r"Save this as `(\w+\.py)`", README), PROGRAMS, strict=True):
        (where / name).write_text(text)
    return where


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.torch
@pytest.mark.parametrize("command", [line for line in COMMANDS if line.startswith("rankscope ")])
def test_a_command_runs(command: str, folder: Path) -> None:
    done = _run(command, folder, environment())
    assert done.returncode == 0, done.stderr
    assert "weights [" in done.stdout or "values [0, 10]" in done.stdout
    if command == next(line for line in COMMANDS if line.startswith("rankscope ")):
        assert [line for line in done.stderr.splitlines() if line.startswith("rankscope: ")] == SHOWN
    assert "rankscope: " in done.stderr or '{"rankscope": "stopped"' in done.stderr


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.torch
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_the_demo_runs() -> None:
    assert "npm run demo" in COMMANDS
    done = _run("npm run demo", ROOT, environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith('{"demo": "passed"}')


@pytest.mark.slow
def test_it_can_be_installed(tmp_path: Path) -> None:
    """Into a fresh environment that sees this one's libraries, so that nothing has to be downloaded."""
    assert COMMANDS[0] == "pip install ./python_adapter"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True, timeout=60)
    bin_folder = tmp_path / "venv" / "bin"
    [packages] = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    shutil.rmtree(packages / "setuptools", ignore_errors=True)  # too old for this project on some Pythons
    libraries = [path for path in sys.path if path.endswith("site-packages")] or [sysconfig.get_path("purelib")]
    (packages / "libraries.pth").write_text("\n".join(libraries) + "\n")
    source = tmp_path / "source"  # building leaves files behind
    shutil.copytree(
        PACKAGE, source / "python_adapter", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    )
    changed = {
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as: off
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    clean = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"} | changed
    done = _run(COMMANDS[0], source, clean)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (bin_folder / "rankscope").exists()
    helped = _run("rankscope run --break nowhere.py:1 -- true", tmp_path, clean)
    assert helped.returncode == 2
    assert "'nowhere.py' does not exist" in helped.stderr


def test_no_command_is_left_out() -> None:
    assert {command.split()[0] for command in COMMANDS} == {"pip", "rankscope", "npm"}


def _run(command: str, where: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", command], cwd=where, env=env, capture_output=True, text=True, timeout=110, check=False
    )
