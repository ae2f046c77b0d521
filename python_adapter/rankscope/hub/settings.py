"""The launch and attach arguments of a job, read and checked."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from rankscope.errors import RankSetError, UserError
from rankscope.ranks import RankSet

_T = TypeVar("_T")

CONSOLES = ("internalConsole", "integratedTerminal", "externalTerminal")
POST_MORTEM = ("pause", "capture", "off")
SESSIONS = ("auto", "perRank", "perGroup", "single")
SYNC_WHAT = ("parameters", "buffers", "gradients", "optimizer", "rng")
SYNC_BATCHES = ("different", "same")

# What VS Code and other clients add for themselves.
_OF_CLIENT = re.compile(
    r"__.*|type|request|presentation|preLaunchTask|postDebugTask|internalConsoleOptions|debugServer|serverReadyAction"
    r"|suppressMultipleSessionWarning|linux|osx|windows|session|restart|parentSession|clientOS|variables"
)


@dataclass(frozen=True)
class PathMapping:
    """A folder of the client and the same folder in the members."""

    local: str
    remote: str


@dataclass(frozen=True)
class SyncSettings:
    """What of the ranks is compared after optimizers' steps. ``interval`` 0: ``SYNC_CHECK_INTERVAL``, else 100."""

    interval: int = 0
    what: list[str] = field(default_factory=lambda: list(SYNC_WHAT))
    tolerance: float = 0.0
    batches: str = ""
    bisect: bool = False
    timeout: float = 60.0


@dataclass(frozen=True)
class LaunchSettings:
    """How one job is run. Build one with :meth:`parse`."""

    name: str = ""
    program: str = ""
    module: str = ""
    command: str | list[str] = ""
    args: list[str] = field(default_factory=list)
    python: str | list[str] = ""
    cwd: str = ""
    env: dict[str, str | None] = field(default_factory=dict)
    env_file: str = ""
    console: str = "integratedTerminal"
    ranks: RankSet | None = None
    rank_sets: dict[str, str] = field(default_factory=dict)
    sessions: str = "auto"
    max_sessions: int = 64
    stop_on_entry: bool = False
    stop_together: bool = False
    barrier_timeout: float = 300.0
    no_debug: bool = False
    just_my_code: bool = True
    path_mappings: list[PathMapping] = field(default_factory=list)
    raise_timeouts: bool = True
    release_after: float = 10.0
    start_wait: float = 20.0
    record: str = ""
    post_mortem: str = "capture"
    post_mortem_timeout: float = 1800.0
    record_max_mb: int = 1000
    hang_after: float = 30.0
    sync_check: SyncSettings | None = None
    workspace_folders: list[str] = field(default_factory=list)

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], *, is_launch: bool) -> LaunchSettings:
        """Read launch (or attach) arguments. Raises :class:`UserError` ``bad-launch`` that names the key at fault."""
        read = _Reader(arguments)
        rank_sets = read.rank_sets()
        no_texts: list[str] = []
        nothing: str | list[str] = ""
        folders = read.take("workspaceFolders", _texts, no_texts)
        folder = read.take("workspaceFolder", _text, "")
        settings = cls(
            name=read.take("name", _text, ""),
            program=read.take("program", _text, ""),
            module=read.take("module", _text, ""),
            command=read.take("command", _text_or_texts, nothing),
            args=read.take("args", _texts, []),
            python=read.take("python", _text_or_texts, nothing),
            cwd=read.take("cwd", _text, ""),
            env=read.take("env", _environment, {}),
            env_file=read.take("envFile", _text, ""),
            console=read.take("console", _one_of(CONSOLES), "integratedTerminal"),
            ranks=read.ranks(rank_sets),
            rank_sets=rank_sets,
            sessions=read.take("sessions", _one_of(SESSIONS), "auto"),
            max_sessions=read.take("maxSessions", _count, 64),
            stop_on_entry=read.take("stopOnEntry", _flag, False),
            stop_together=read.take("stopTogether", _flag, False),
            barrier_timeout=read.take("barrierTimeout", _seconds, 300.0),
            no_debug=read.take("noDebug", _flag, False),
            just_my_code=read.take("justMyCode", _flag, True),
            path_mappings=read.take("pathMappings", _mappings, []),
            raise_timeouts=read.take("raiseTimeouts", _flag, True),
            release_after=read.take("releaseAfter", _seconds, 10.0),
            start_wait=read.take("startWait", _seconds, 20.0),
            record=read.take("record", _text, ""),
            post_mortem=read.take("postMortem", _one_of(POST_MORTEM), "capture"),
            post_mortem_timeout=read.take("postMortemTimeout", _seconds, 1800.0),
            record_max_mb=read.take("recordMaxMB", _count, 1000),
            hang_after=read.take("hangAfter", _seconds_or_none, 30.0),
            sync_check=read.take("syncCheck", _sync, None),
            workspace_folders=[*([folder] if folder else []), *(f for f in folders if f != folder)],
        )
        read.refuse_the_rest()
        if is_launch:
            settings.check_what_to_run()
        return settings

    def check_what_to_run(self) -> None:
        """Raises :class:`UserError` unless exactly one thing is to be run and it is there."""
        given = [key for key in ("program", "module", "command") if getattr(self, key)]
        if len(given) != 1:
            what = "Nothing to run is given" if not given else f"{' and '.join(given)} exclude each other"
            raise _bad(given[1] if given else "program", what, "Give one of program, module and command.")
        base = Path(self.cwd or Path.cwd())
        if not base.is_dir():
            raise _bad("cwd", f"the folder '{base}' does not exist", "Name a folder that exists.")
        if self.program and not (base / self.program).exists():
            raise UserError("no-such-program", f"The program '{self.program}' does not exist.", f"Looked in {base}.")
        if self.env_file:
            self.environment()

    def environment(self) -> dict[str, str]:
        """The hub's environment, then ``envFile``, then ``env``; a ``null`` there removes a variable."""
        merged: dict[str, str | None] = {**os.environ, **_read_env_file(self.env_file), **self.env}
        return {name: value for name, value in merged.items() if value is not None}


def _bad(key: str, why: str, hint: str = "") -> UserError:
    return UserError("bad-launch", f"launch.json, '{key}': {why}.", hint)


class _Reader:
    """Takes keys out of the arguments; what is left at the end is unknown."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._left = dict(arguments)

    def take(self, key: str, read: Callable[[Any], _T], default: _T) -> _T:
        value = self._left.pop(key, None)
        if value is None:
            return default
        try:
            return read(value)
        except ValueError as e:
            raise _bad(key, str(e)) from e

    def rank_sets(self) -> dict[str, str]:
        none: dict[str, str] = {}
        sets = self.take("rankSets", _named_texts, none)
        for name, text in sets.items():
            try:
                RankSet.parse(text, sets)
            except RankSetError as e:
                raise _bad(f"rankSets.{name}", e.message.rstrip("."), e.hint) from e
        return sets

    def ranks(self, sets: Mapping[str, str]) -> RankSet | None:
        value = self._left.pop("ranks", None)
        if value is None or value == "":
            return None
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        try:
            return RankSet.parse(text, sets)
        except RankSetError as e:
            raise _bad("ranks", e.message.rstrip("."), e.hint) from e

    def refuse_the_rest(self) -> None:
        for key in self._left:
            if not _OF_CLIENT.fullmatch(key):
                raise _bad(key, "there is no such setting", "Is it misspelt?")


def _text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"{value!r} is no text")
    return value


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is no list of texts")
    return [str(item) if isinstance(item, (int, float)) else _text(item) for item in value]


def _text_or_texts(value: Any) -> str | list[str]:
    return _texts(value) if isinstance(value, list) else _text(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{value!r} is no number of at least 1")
    return value


def _seconds(value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value <= 86400:
        raise ValueError(f"{value!r} is no number of seconds between 0 and 86400")
    return float(value)


def _seconds_or_none(value: Any) -> float:
    """The same, or 0: never."""
    return 0.0 if value == 0 and not isinstance(value, bool) else _seconds(value)


def _sync(value: Any) -> SyncSettings | None:
    """``true`` or an object; ``false`` is none."""
    if isinstance(value, bool):
        return SyncSettings() if value else None
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is neither true, false nor an object")
    readers: dict[str, Callable[[Any], Any]] = {
        "interval": _count,
        "what": _sync_what,
        "tolerance": _tolerance,
        "batches": _one_of(SYNC_BATCHES),
        "bisect": _flag,
        "timeout": _seconds,
    }
    read: dict[str, Any] = {}
    for key, item in value.items():
        if key not in readers:
            raise ValueError(f"it has no '{key}'")
        try:
            read[key] = readers[key](item)
        except ValueError as e:
            raise ValueError(f"'{key}': {e}") from e
    return SyncSettings(**read)


def _sync_what(value: Any) -> list[str]:
    words = _texts(value)
    unknown = [word for word in words if word not in SYNC_WHAT]
    if unknown or not words:
        raise ValueError(f"{unknown[0] if unknown else value!r} is none of {', '.join(SYNC_WHAT)}")
    return words


def _tolerance(value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < float("inf"):
        raise ValueError(f"{value!r} is no number of at least 0")
    return float(value)


def _one_of(choices: tuple[str, ...]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"{value!r} is none of {', '.join(choices)}")
        return str(value)

    return read


def _environment(value: Any) -> dict[str, str | None]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is no object of variables")
    for name, text in value.items():
        if not name or "=" in name or "\0" in name:
            raise ValueError(f"{name!r} is no name of a variable")
        if text is not None and not isinstance(text, (str, int, float)):
            raise ValueError(f"the value of '{name}' is no text")
    return {
        name: None if text is None else str(text).lower() if isinstance(text, bool) else str(text)
        for name, text in value.items()
    }


def _named_texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is no object of rank sets")
    return {str(name): _text(text) for name, text in value.items()}


def _mappings(value: Any) -> list[PathMapping]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is no list of mappings")
    mappings = []
    for item in value:
        if not isinstance(item, dict) or not item.get("localRoot") or not item.get("remoteRoot"):
            raise ValueError(f"{item!r} has not both localRoot and remoteRoot")
        mappings.append(PathMapping(_text(item["localRoot"]).rstrip("/"), _text(item["remoteRoot"]).rstrip("/")))
    return mappings


def _read_env_file(path: str) -> dict[str, str]:
    """``NAME=value`` lines; ``#`` starts a comment line, quotes around a value are taken off."""
    if not path:
        return {}
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise _bad("envFile", f"'{path}' cannot be read: {e}") from e
    found = {}
    for number, line in enumerate(lines, 1):
        text = line.strip().removeprefix("export ").strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise _bad("envFile", f"line {number} of '{path}' is no NAME=value")
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        found[name.strip()] = value
    return found
