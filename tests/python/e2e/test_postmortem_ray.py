"""Every way in which Ray code fails: the rank's own failure first, what the driver gets of it folded."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.dap_client import FakeEditor
from support.kept import job, kept
from support.runs import line_of, plain, python

pytestmark = [pytest.mark.ray, pytest.mark.slow]

FAILS = "fails_ray.py"
WHO = {
    "task": "tasks 0",
    "method": "Actor 0",
    "constructor": "Constructor 0",
    "async": "Async 0",
    "group": "Grouped 0",
}


@pytest.mark.parametrize("how", WHO)
def test_a_rank_fails_and_the_driver_hears_of_it(tmp_path: Path, how: str) -> None:
    command = python(job(FAILS), how)
    found = kept(tmp_path, *command)
    assert (found.first["label"], found.first["text"]) == (WHO[how], "ValueError: bad step 7 3.5")
    assert (found.first["path"], found.first["line"]) == (job(FAILS), line_of(FAILS, "raise"))
    assert found.frames(WHO[how])[0] == f"fail:{line_of(FAILS, 'raise')}"
    assert found.values(WHO[how]) == {"step": "7", "loss": "3.5"}
    assert found.frames("driver")[0] == f"main:{line_of(FAILS, 'get')}"  # at that moment
    assert found.followed["driver"].startswith("ray.exceptions.")
    alone = plain(*command, cwd=tmp_path)
    assert found.run.exit_code == alone.exit_code == 1
    assert _frames(found.run.errors) == _frames(alone.errors)


def _frames(errors: str) -> list[str]:
    """The lines of a traceback, but those of a future, which may have its result at once or wait for it."""
    return [line for line in errors.splitlines() if line.startswith("  File") and "/concurrent/" not in line]


def test_the_innermost_of_nested_actors_is_the_first(tmp_path: Path) -> None:
    found = kept(tmp_path, *python(job(FAILS), "nested"))
    assert (found.first["label"], found.first["text"]) == ("Actor 1", "ValueError: bad step 7 3.5")
    assert found.frames("Actor 0")[0] == f"nested:{line_of(FAILS, 'nested')}"
    assert {"Actor 0", "driver"} <= set(found.followed)


def test_an_actor_that_is_killed_is_the_first_and_not_what_ray_says_of_it(tmp_path: Path) -> None:
    found = kept(tmp_path, *python(job(FAILS), "killed"))
    assert found.first["label"] == "Actor 0"
    assert found.first["text"].startswith("killed or ended without a word")
    assert found.followed["driver"].startswith("ray.exceptions.ActorDiedError")


def test_under_uv(tmp_path: Path, uv_run: tuple[str, ...]) -> None:
    found = kept(tmp_path, *uv_run, "python", job(FAILS), "method")
    assert (found.first["label"], found.first["text"]) == ("Actor 0", "ValueError: bad step 7 3.5")
    assert found.values("Actor 0") == {"step": "7", "loss": "3.5"}


def test_of_an_actor_that_dies_by_a_signal_the_line_is_known(tmp_path: Path) -> None:
    found = kept(tmp_path, *python(job(FAILS), "crash"))
    assert (found.first["label"], found.first["text"]) == ("Actor 0", "killed by SIGSEGV")
    assert (found.first["path"], found.first["line"]) == (job(FAILS), line_of(FAILS, "crash"))
    assert found.followed["driver"].startswith("ray.exceptions.ActorDiedError")


def test_the_rank_is_held_and_what_the_driver_hears_of_it_is_not(tmp_path: Path) -> None:
    async def work() -> None:
        async with FakeEditor() as editor:
            settings = {"program": job(FAILS), "args": ["method"], "cwd": str(tmp_path), "sessions": "single"}
            await editor.launch(**settings, env={"RAY_DEBUG_POST_MORTEM": "1"})
            stop = await editor.wait_for_stop(timeout=60)
            assert (stop.reason, await stop.line()) == ("exception", line_of(FAILS, "raise"))
            assert (await stop.local_variables())["loss"] == "3.5"
            await stop.resume()
            assert await editor.exit_code() == 1
            assert len([body for event, body in editor.root.events if event == "stopped"]) == 1

    asyncio.run(asyncio.wait_for(work(), 110))
