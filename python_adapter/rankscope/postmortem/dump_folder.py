"""The dumps of a run as they are written: one file a process, all of them within a bound."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankscope import journal
from rankscope.postmortem import kept_run


@dataclass(frozen=True)
class _Written:
    path: Path
    size: int
    episode: int
    has_failed: bool


class DumpFolder:
    """Writes the dumps of one run. When they exceed ``max_bytes`` the oldest detail goes first, and is counted.

    First go those of earlier failures: the peers, then the failed processes themselves; then the peers of the last
    failure, whose failed processes always stay. ``dropped`` counts the files that went, as the record does.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self.dropped = 0
        self._written: list[_Written] = []
        self._losses = journal.Journal(folder / kept_run.DROPPED, kept_run.DROPPED_KIND)

    def save(self, about: kept_run.About, dump: dict[str, Any]) -> Path:
        """Keep one process's dump; ``about`` is the member as the hub describes it. Raises ``OSError``."""
        target = self.folder / kept_run.DUMPS
        target.mkdir(parents=True, exist_ok=True, mode=0o700)
        episode, name = (
            int(about.get("episode", 0)),
            re.sub(r"[^\w.-]+", "-", str(about.get("label") or "process"))[:60],
        )
        path = target / f"{episode:03}-{about.get('number', 0):04}-{name}.msgpack"
        head = journal.pack({"rankscope": journal.VERSION, "kind": kept_run.DUMP_KIND})
        content = head + journal.pack({"about": about}) + journal.pack({"dump": dump})
        new = path.with_suffix(".new")
        new.write_bytes(content)
        new.replace(path)
        self._written.append(_Written(path, len(content), episode, bool(about.get("failed"))))
        self._drop(episode)
        return path

    def _drop(self, last: int) -> None:
        excess = sum(one.size for one in self._written) - self.max_bytes
        order = sorted(self._written, key=lambda one: (one.episode, one.has_failed))
        for one in order:
            if excess <= 0:
                break
            if one.episode == last and one.has_failed:
                continue
            one.path.unlink(missing_ok=True)
            self._written.remove(one)
            self._losses.append({"file": one.path.name, "bytes": one.size})
            self.dropped += 1
            excess -= one.size
