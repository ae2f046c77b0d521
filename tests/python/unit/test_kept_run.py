"""Dumps in a record: written, found again, damaged."""

from __future__ import annotations

import asyncio
import contextlib
import random
from pathlib import Path
from typing import Any

import pytest

from rankscope.dap.messages import DapError
from rankscope.hub.kept_member import KeptMember
from rankscope.postmortem import dump, kept_run
from rankscope.postmortem.dump_folder import DumpFolder
from rankscope.postmortem.repair import repaired

pytestmark = pytest.mark.core

ROOM = 1 << 30


def made() -> dict[str, Any]:
    batch = {"sizes": [1, 2], "name": "x"}
    try:
        fail(batch)
    except ValueError as e:
        return dump.of_exception(e, lambda path: path == __file__)
    raise AssertionError


def fail(batch: dict[str, Any]) -> None:
    raise ValueError(f"bad {batch['name']}")


def about(number: int, **more: Any) -> dict[str, Any]:
    return {"id": f"m{number}", "number": number, "label": f"actor {number}", "group": "actor", "rank": number, **more}


def test_the_failed_one_comes_first_and_reads_as_it_was(tmp_path: Path) -> None:
    DumpFolder(tmp_path, ROOM).save(about(0), dump.of_now(lambda _path: False))
    DumpFolder(tmp_path, ROOM).save(about(2, failed=True), made())
    run = kept_run.open_run(tmp_path)
    assert [kept.about["rank"] for kept in run.kept] == [2, 0]
    assert run.problems == []
    assert run.kept[0].load()["exception"]["message"] == "bad x"


def test_only_the_last_failure_is_opened(tmp_path: Path) -> None:
    DumpFolder(tmp_path, ROOM).save(about(0, episode=1), made())
    DumpFolder(tmp_path, ROOM).save(about(1, episode=2), made())
    assert [kept.about["rank"] for kept in kept_run.open_run(tmp_path).kept] == [1]


def test_the_oldest_detail_goes_first_and_is_counted(tmp_path: Path) -> None:
    size = DumpFolder(tmp_path / "other", ROOM).save(about(0, episode=1), made()).stat().st_size
    folder = DumpFolder(tmp_path, size * 4)
    for episode in (1, 2):
        for number in range(3):
            folder.save(about(number, episode=episode, failed=number == 0), made())
    left = [(path.name[:3], path.name[4:8]) for path in sorted((tmp_path / kept_run.DUMPS).iterdir())]
    assert (left[-1], folder.dropped) == (("002", "0002"), 6 - len(left))
    assert {("001", "0001"), ("001", "0002")}.isdisjoint(left)
    assert "dropped" in kept_run.open_run(tmp_path).problems[0]
    tight = DumpFolder(tmp_path / "tight", 1)
    tight.save(about(0, episode=1, failed=True), made())
    tight.save(about(1, episode=1), made())
    assert [kept.about["rank"] for kept in kept_run.open_run(tmp_path / "tight").kept] == [0]


def test_an_empty_folder_and_a_foreign_file_are_no_error(tmp_path: Path) -> None:
    assert kept_run.open_run(tmp_path).kept == []
    (tmp_path / kept_run.DUMPS).mkdir()
    (tmp_path / kept_run.DUMPS / "000.msgpack").write_bytes(b"not ours")
    assert kept_run.open_run(tmp_path).problems


def test_whatever_a_file_holds_looking_into_it_ends_well(tmp_path: Path) -> None:
    path = DumpFolder(tmp_path, ROOM).save(about(2, failed=True), made())
    whole = path.read_bytes()

    async def look(member: KeptMember) -> None:
        for command, arguments in (
            ("threads", {}),
            ("stackTrace", {"threadId": 1}),
            ("exceptionInfo", {"threadId": 1}),
        ):
            with contextlib.suppress(DapError):
                body = await member.debug(command, arguments)
                for frame in body.get("stackFrames", ()):
                    for scope in (await member.debug("scopes", {"frameId": frame["id"]}))["scopes"]:
                        await member.debug("variables", scope)

    for seed in range(150):
        chance = random.Random(seed)
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 5)):
            at = chance.randrange(len(data))
            data[at : at + chance.randrange(0, 9)] = chance.randbytes(chance.randrange(1, 9))
        path.write_bytes(bytes(data))
        run = kept_run.open_run(tmp_path)
        for kept in run.kept:
            asyncio.run(look(KeptMember(0, kept.about, kept.load)))


@pytest.mark.parametrize("broken", [None, 3, [], {"nodes": 5, "frames": [1], "threads": [{"frames": [0, 9, "x"]}]}])
def test_a_dump_of_any_shape_is_repaired(broken: Any) -> None:
    sound = repaired(broken if isinstance(broken, dict) else {"exception": broken})
    for thread in sound["threads"]:
        assert all(number < len(sound["frames"]) for number in thread["frames"])
