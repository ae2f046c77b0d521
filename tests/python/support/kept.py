"""Jobs that fail under ``rankscope run``, and what their records keep."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankscope.postmortem import kept_run, listing
from support.runs import JOBS, Run, plain, run


@dataclass(frozen=True)
class Kept:
    """What came of a job: the run itself, and its record."""

    run: Run
    folder: Path
    record: kept_run.KeptRun

    @property
    def first(self) -> dict[str, Any]:
        """The finding of the first failure."""
        [first] = [finding for finding in self.record.findings if finding["isFirst"]]
        return first

    @property
    def followed(self) -> dict[str, str]:
        """The texts of the failures that followed, by label; the driver's name is left out."""
        others = [finding for finding in self.record.findings if not finding["isFirst"]]
        return {short(finding["label"]): finding["text"] for finding in others}

    @property
    def dumps(self) -> dict[str, dict[str, Any]]:
        """Every process's dump, by label; the driver's name is left out."""
        return {short(kept.about["label"]): kept.load() for kept in self.record.kept}

    def frames(self, label: str) -> list[str]:
        """The own frames of a process's first thread, innermost first: ``function:line``."""
        dump = self.dumps[label]
        frames = [dump["frames"][number] for number in dump["threads"][0]["frames"]]
        return [f"{frame['name'].rpartition('.')[2]}:{frame['line']}" for frame in frames if frame["isUser"]]

    def values(self, label: str) -> dict[str, str]:
        """The variables of the innermost own frame."""
        dump = self.dumps[label]
        frames = [dump["frames"][number] for number in dump["threads"][0]["frames"]]
        top = next(frame for frame in frames if frame["isUser"])
        return {name: dump["nodes"][number]["text"] for name, number in dump["nodes"][top["locals"]]["kids"]}


def short(label: str) -> str:
    """``driver``, ``driver child``, ``world 2``."""
    return re.sub(r"driver \S+", "driver", re.sub(r" child \d+", " child", label))


def kept(folder: Path, *command: str, **added: str) -> Kept:
    """Run a job from a folder of its own and open its record."""
    done = run([], *command, cwd=folder, **added)
    runs = listing.runs(folder)
    assert len(runs) == 1, done
    return Kept(done, runs[0].folder, kept_run.open_run(runs[0].folder))


def same_as_plain(under: Kept, folder: Path, *command: str, **added: str) -> None:
    """Output, errors (tracebacks included) and exit code are those of the job without RankScope."""
    alone = plain(*command, cwd=folder, **added)
    own = re.sub(r'\{"rankscope": .*\}\n', "", under.run.errors)  # it may stand within a line of the job's
    assert _anonymous(own.splitlines()) == _anonymous(alone.errors.splitlines())
    assert _anonymous(under.run.output.splitlines()) == _anonymous(alone.output.splitlines())
    code = alone.exit_code if alone.exit_code >= 0 else 128 - alone.exit_code  # as a shell has it
    assert under.run.exit_code == code


def _anonymous(lines: list[str]) -> list[str]:
    return [re.sub(r"0x[0-9a-f]+|\d{3,}", "N", line) for line in lines]


def job(name: str) -> str:
    """The whole path of a job under test."""
    return str(JOBS / name)
