"""The record of a run: ``.rankscope/runs/<time>-<name>/``, whose ``run.json`` says what ran and where its hub is."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from pathlib import Path
from typing import Any

from rankscope.errors import UserError

RUNS = Path(".rankscope") / "runs"
HIDDEN = RUNS.parent / "hidden.json"  # what a person wants to see no more of, kept by the language server
_RUN_FILE = "run.json"


def begin(base: Path, name: str, about: dict[str, Any]) -> Path:
    """Make a run's folder below ``base`` and write what is known. Raises ``OSError``."""
    runs = base / RUNS
    runs.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError), (runs.parent / ".gitignore").open("x") as file:
        file.write("*\n")
    plain_name = re.sub(r"[^\w.-]+", "-", name)[:40] or "run"
    folder = runs / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{plain_name}"
    folder.mkdir(mode=0o700)
    write(folder, about)
    return folder


def write(folder: Path, about: dict[str, Any]) -> None:
    """Replace ``run.json`` as a whole. Raises ``OSError``."""
    new = folder / f"{_RUN_FILE}.new"
    new.write_text(json.dumps(about, indent=2) + "\n")
    new.replace(folder / _RUN_FILE)


def hub_address(place: str, base: Path) -> str:
    """Where the hub of a run listens for editors.

    ``place`` is an address (``unix:PATH``, ``tcp:PORT``), a run's folder, or empty for the newest
    run below ``base`` that goes on. Raises :class:`UserError` ``no-such-run``.
    """
    if place.startswith(("unix:", "tcp:")):
        return place
    folders = [base / place] if place else sorted((base / RUNS).glob("*"), reverse=True)
    for folder in folders:
        address = _address_in(folder)
        if address:
            return address
    where = f"'{place}'" if place else f"{base / RUNS}"
    raise UserError("no-such-run", f"No run that goes on is found in {where}.", "Name its folder or its hub's address.")


def _address_in(folder: Path) -> str:
    try:
        about = json.loads((folder / _RUN_FILE).read_text())
        os.kill(int(about["hub"]["pid"]), 0)
        return str(about["hub"]["editor"])
    except PermissionError:
        return ""  # another person's
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def ignored_tensors(base: Path) -> tuple[str, ...]:
    """The names of tensors of which no finding is wanted; none where nothing readable says so."""
    try:
        names = json.loads((base / HIDDEN).read_text()).get("tensors")
    except (OSError, ValueError, AttributeError, RecursionError):
        return ()
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()
