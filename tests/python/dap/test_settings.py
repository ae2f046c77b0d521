"""Launch arguments: what is read, and which key a bad value is blamed on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rankscope.errors import UserError
from rankscope.hub import settings as settings_module
from rankscope.hub.settings import LaunchSettings, PathMapping, SyncSettings


def launch(**arguments: Any) -> LaunchSettings:
    return LaunchSettings.parse({"command": "true", "cwd": "/", **arguments}, is_launch=True)


def test_what_vs_code_adds_is_left_alone() -> None:
    settings = launch(
        type="rankscope", request="launch", name="Train", preLaunchTask="build", presentation={}, __sessionId="1"
    )
    assert settings.name == "Train"
    assert settings.sessions == "auto"
    assert settings.just_my_code
    assert settings.ranks is None


def test_everything_is_read(tmp_path: Path) -> None:
    (tmp_path / "e.env").write_text("# comment\nexport A=1\nB='two words'\n\n")
    settings = launch(
        ranks=[0, "3-5"],
        rankSets={"heads": "0,4"},
        env={"C": None, "D": 4, "E": True},
        envFile=str(tmp_path / "e.env"),
        pathMappings=[{"localRoot": "/home/me/", "remoteRoot": "/app"}],
        workspaceFolder="/home/me",
        workspaceFolders=["/home/me", "/home/other"],
        releaseAfter=3,
    )
    assert str(settings.ranks) == "0,3-5"
    environment = settings.environment()
    assert (environment["A"], environment["B"], environment["D"], environment["E"]) == ("1", "two words", "4", "true")
    assert settings.path_mappings == [PathMapping("/home/me", "/app")]
    assert settings.workspace_folders == ["/home/me", "/home/other"]
    assert settings.release_after == 3.0


def test_null_removes_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GONE", "1")
    assert "GONE" not in launch(env={"GONE": None}).environment()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"stopOnEntri": True}, "'stopOnEntri': there is no such setting"),
        ({"stopOnEntry": "yes"}, "'stopOnEntry': 'yes' is neither true nor false"),
        ({"sessions": "many"}, "'sessions': 'many' is none of auto, perRank"),
        ({"console": "tty"}, "'console': 'tty' is none of"),
        ({"args": "x"}, "'args': 'x' is no list"),
        ({"env": {"A=B": "1"}}, "'env': 'A=B' is no name"),
        ({"env": []}, r"'env': \[\] is no object"),
        ({"envFile": "/nowhere.env"}, "'envFile': '/nowhere.env' cannot be read"),
        ({"ranks": "0,x"}, "'ranks': Rank set '0,x': 'x' is neither .* at column 3"),
        ({"rankSets": {"a": "b"}}, "'rankSets.a': Rank set 'b'"),
        ({"rankSets": {"a": "a"}}, "'rankSets.a': .*defined by itself"),
        ({"releaseAfter": 0}, "'releaseAfter': 0 is no number of seconds"),
        ({"hangAfter": -1}, "'hangAfter': -1 is no number of seconds"),
        ({"hangAfter": False}, "'hangAfter': False is no number of seconds"),
        ({"startWait": True}, "'startWait': True is no number"),
        ({"syncCheck": "often"}, "'syncCheck': 'often' is neither true, false nor an object"),
        ({"syncCheck": {"every": 5}}, "'syncCheck': it has no 'every'"),
        ({"syncCheck": {"interval": 0}}, "'syncCheck': 'interval': 0 is no number of at least 1"),
        ({"syncCheck": {"what": ["weights"]}}, "'syncCheck': 'what': 'weights' is none of parameters, buffers"),
        ({"syncCheck": {"what": []}}, r"'what': \[\] is none of"),
        ({"syncCheck": {"tolerance": -1}}, "'tolerance': -1 is no number of at least 0"),
        ({"syncCheck": {"tolerance": float("nan")}}, "'tolerance': nan is no number of at least 0"),
        ({"syncCheck": {"batches": "all"}}, "'batches': 'all' is none of different, same"),
        ({"syncCheck": {"bisect": 1}}, "'bisect': 1 is neither true nor false"),
        ({"maxSessions": 0}, "'maxSessions': 0 is no number of at least 1"),
        ({"pathMappings": [{"localRoot": "/a"}]}, "'pathMappings': .* has not both"),
        ({"module": "m"}, "'command': module and command exclude each other"),
        ({"cwd": "/nowhere"}, "'cwd': the folder '/nowhere' does not exist"),
        ({"program": 3}, "'program': 3 is no text"),
    ],
)
def test_a_bad_value_names_its_key(arguments: Any, says: Any) -> None:
    with pytest.raises(UserError, match=says) as caught:
        launch(**arguments)
    assert caught.value.code == "bad-launch"


def test_the_sync_check_is_read() -> None:
    assert launch().sync_check is None
    assert launch(syncCheck=False).sync_check is None
    assert launch(syncCheck=True).sync_check == SyncSettings()
    given = {"interval": 7, "what": ["rng"], "tolerance": 1, "batches": "same", "bisect": True, "timeout": 5}
    assert launch(syncCheck=given).sync_check == SyncSettings(7, ["rng"], 1.0, "same", True, 5.0)
    schema = DEBUGGER["launch"]["properties"]["syncCheck"]["properties"]
    assert set(schema) == set(given)
    assert tuple(schema["what"]["items"]["enum"]) == settings_module.SYNC_WHAT
    assert tuple(schema["batches"]["enum"]) == settings_module.SYNC_BATCHES


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(UserError) as caught:
        LaunchSettings.parse({"program": "nowhere.py", "cwd": "/"}, is_launch=True)
    assert caught.value.code == "no-such-program"


def test_attach_needs_nothing_to_run() -> None:
    assert LaunchSettings.parse({"ranks": "0"}, is_launch=False).program == ""


# --- package.json says the same -------------------------------------------------------------------

DEBUGGER: dict[str, Any] = json.loads((Path(__file__).parents[3] / "package.json").read_text())["contributes"][
    "debuggers"
][0]["configurationAttributes"]
# Where the schema's default is another than a value, or there is none.
SAMPLES: dict[str, Any] = {
    "program": "python",
    "module": "train",
    "command": "true",
    "python": "/usr/bin/python3",
    "cwd": "/",
    "envFile": "",
    "ranks": "0",
}
# The extension turns it into something else; VS Code and the extension add these.
OF_EXTENSION = {"run"}
ADDED = {"name", "workspaceFolder", "workspaceFolders", "noDebug"}


def properties() -> list[tuple[str, str]]:
    return [(kind, key) for kind, schema in DEBUGGER.items() for key in schema["properties"] if key not in OF_EXTENSION]


@pytest.mark.parametrize(("kind", "key"), properties())
def test_what_the_schema_offers_is_taken(kind: str, key: str) -> None:
    value = SAMPLES.get(key, DEBUGGER[kind]["properties"][key].get("default"))
    assert value is not None, f"no sample of '{key}'"
    what = {} if kind == "attach" or key in ("program", "module", "command") else {"command": "true"}
    folder = {"cwd": "/usr/bin" if key == "program" else "/"}
    program = {"program": "env"} if key == "program" else {}
    LaunchSettings.parse({**what, **folder, key: value, **program}, is_launch=kind == "launch")
    for choice in DEBUGGER[kind]["properties"][key].get("enum", ()):
        LaunchSettings.parse({**what, **folder, key: choice}, is_launch=kind == "launch")


def test_what_is_taken_is_in_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = set()
    own = settings_module._Reader.take

    def take(self: Any, key: str, read: Callable[[Any], Any], default: Any) -> Any:
        taken.add(key)
        return own(self, key, read, default)

    monkeypatch.setattr(settings_module._Reader, "take", take)
    launch()
    offered = {key for schema in DEBUGGER.values() for key in schema["properties"]}
    assert (taken | {"ranks"}) - ADDED == offered - OF_EXTENSION


@pytest.mark.parametrize("key", ["maxSessions", "releaseAfter", "startWait"])
def test_defaults_are_the_schemas(key: str) -> None:
    name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
    assert getattr(launch(), name) == DEBUGGER["launch"]["properties"][key]["default"]
