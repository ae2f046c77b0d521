"""Launch arguments: what is read, and which key a bad value is blamed on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rankscope.errors import UserError
from rankscope.hub.settings import LaunchSettings, PathMapping


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
        ({"startWait": True}, "'startWait': True is no number"),
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


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(UserError) as caught:
        LaunchSettings.parse({"program": "nowhere.py", "cwd": "/"}, is_launch=True)
    assert caught.value.code == "no-such-program"


def test_attach_needs_nothing_to_run() -> None:
    assert LaunchSettings.parse({"ranks": "0"}, is_launch=False).program == ""
