"""A dump looked into like a live process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from rankscope.dap.messages import DapError
from rankscope.hub import compare, evaluation
from rankscope.hub.kept_member import KeptMember
from rankscope.hub.paths import Paths
from rankscope.hub.stacks import Reader
from rankscope.postmortem import dump

pytestmark = pytest.mark.core


class Batch:
    def __init__(self) -> None:
        self.sizes = [3, 5]
        self.names = {"left": "l", 7: "seven"}


def failing(step: int) -> None:
    batch = Batch()
    raise ValueError(f"bad batch at {step}, {len(batch.sizes)}")


@pytest.fixture
def member() -> KeptMember:
    try:
        failing(4)
    except ValueError as e:
        made = dump.of_exception(e, lambda path: path == __file__)
    about = {"id": "m2", "label": "world 2", "role": "rank", "group": "world", "rank": 2, "failed": True, "ending": "x"}
    return KeptMember(0, about, lambda: made)


def ask(member: KeptMember, command: str, **arguments: Any) -> dict[str, Any]:
    return asyncio.run(member.debug(command, arguments))


def test_it_is_stopped_where_it_failed(member: KeptMember) -> None:
    assert (member.state, member.facts.rank, member.stopped[1]["reason"]) == ("crashed", 2, "exception")
    top = ask(member, "stackTrace", threadId=1, levels=1)["stackFrames"][0]
    assert top["name"] == "failing"
    assert top["source"]["path"] == __file__
    assert "sourceReference" not in top["source"]


def test_its_variables_unfold_and_are_found_by_name(member: KeptMember) -> None:
    frame = ask(member, "stackTrace", threadId=1)["stackFrames"][0]["id"]
    scope = ask(member, "scopes", frameId=frame)["scopes"][0]
    variables = {v["name"]: v for v in ask(member, "variables", **scope)["variables"]}
    assert variables["step"]["value"] == "4"
    parts = ask(member, "variables", variablesReference=variables["batch"]["variablesReference"])["variables"]
    assert [part["name"] for part in parts] == ["sizes", "names"]
    for expression, value in (("batch.sizes[1]", "5"), ("batch.names['left']", "'l'"), ("batch.names[7]", "'seven'")):
        assert ask(member, "evaluate", frameId=frame, expression=expression)["result"] == value
    for expression in ("batch.sizes[9]", "nothing", "step + 1", "f(", "batch.sizes[step]"):
        with pytest.raises(DapError):
            ask(member, "evaluate", frameId=frame, expression=expression)


def test_the_exception_is_told_with_its_chain(member: KeptMember) -> None:
    told = ask(member, "exceptionInfo", threadId=1)
    assert (told["exceptionId"], told["description"]) == ("ValueError", "bad batch at 4, 2")
    assert 'in failing\n    raise ValueError(f"bad batch' in told["details"]["stackTrace"]


def test_a_file_that_has_changed_since_is_shown_as_it_was(member: KeptMember, tmp_path: Path) -> None:
    changed = tmp_path / "changed.py"
    changed.write_text("other\n")
    member.in_client = lambda _path: str(changed)
    source = ask(member, "stackTrace", threadId=1)["stackFrames"][0]["source"]
    assert "has changed" in source["origin"]
    text = ask(member, "source", sourceReference=source["sourceReference"])["content"]
    assert text == Path(__file__).read_text()


@pytest.mark.parametrize("command", ["continue", "next", "pause", "setVariable", "goto"])
def test_what_needs_a_process_says_so(member: KeptMember, command: str) -> None:
    with pytest.raises(DapError, match="is a record"):
        ask(member, command)


def test_a_comparison_knows_what_was_kept(member: KeptMember) -> None:
    async def compared(expression: str) -> dict[str, Any]:
        [answer] = await evaluation.ask([member], evaluation.Question(expression, 5.0), Paths())  # type: ignore[list-item]
        return compare.row({"member": member.id}, answer)

    number = asyncio.run(compared("step"))
    assert (number["kind"], number["value"], number["frame"]["name"]) == ("number", 4, "failing")
    text = asyncio.run(compared("batch.names[7]"))
    assert (text["kind"], text["text"]) == ("text", "'seven'")
    assert asyncio.run(compared("step + 1"))["error"].startswith("A record knows names")


def test_its_stacks_merge_with_those_of_others(member: KeptMember) -> None:
    thread, *_ = Reader(str).read(asyncio.run(member.ask("stacks", {"packed": True})))  # the runner may have some
    assert thread.name == ""
    assert [name for name, *_ in thread.frames] == ["member", "failing"], "outermost first"
