"""The language server over its real protocol."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from rankscope import journal
from support.lsp_session import LspSession, lsp_session

README = Path(__file__).parents[3] / "README.md"
BAD = "import torch.distributed as dist\n\nif dist.get_rank() == 0:\n    dist.barrier()\n"


def begin_run(workspace: Path, name: str, **about: Any) -> Path:
    folder = workspace / ".rankscope" / "runs" / name
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"name": name, **about}))
    return folder


def note(folder: Path, **finding: Any) -> None:
    facts = {
        "kind": "crash",
        "severity": "error",
        "isFirst": True,
        "episode": 1,
        "at": 100.0,
        "text": "ValueError: bad",
    }
    journal.Journal(folder / "findings.msgpack", "findings").append({**facts, **finding})


def edit(start: tuple[int, int], end: tuple[int, int], text: str) -> types.TextDocumentContentChangePartial:
    return types.TextDocumentContentChangePartial(types.Range(types.Position(*start), types.Position(*end)), text)


def applied(text: str, action: types.CodeAction) -> str:
    assert action.edit is not None and action.edit.changes is not None
    [[change]] = action.edit.changes.values()
    lines = text.split("\n")
    line = lines[change.range.start.line]
    lines[change.range.start.line] = (
        line[: change.range.start.character] + change.new_text + line[change.range.end.character :]
    )
    return "\n".join(lines)


# --- lints ----------------------------------------------------------------------------------------


def test_a_mistake_is_shown_and_switched_off_where_it_stands(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lsp_session(tmp_path, readme=str(README)) as session:
            session.open("train.py", BAD)
            [found] = await session.until("train.py", len)
            assert (found.code, found.source) == ("collective-on-some-ranks", "RankScope")
            assert found.severity == types.DiagnosticSeverity.Warning
            assert found.range == types.Range(types.Position(3, 4), types.Position(3, 18))
            assert found.code_description is not None
            assert found.code_description.href.startswith(README.as_uri() + "#L")
            [action] = await session.actions("train.py", 3)
            assert action.title == "Disable this rule on this line"
            text = applied(BAD, action)
            assert text.split("\n")[3] == "    dist.barrier()  # rankscope: ignore[collective-on-some-ranks]"
            session.change("train.py", types.TextDocumentContentChangeWholeDocument(text))
            assert await session.until("train.py", lambda shown: not shown) == []

    asyncio.run(scenario())


def test_edits_are_followed_and_the_last_one_counts(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lsp_session(tmp_path) as session:
            # a form feed and U+2028 end no line, a letter beyond 16 bits has two units
            session.open("train.py", "# \x0c \u2028 \U0001f600\n" + BAD)
            [found] = await session.until("train.py", len)
            assert found.range.start == types.Position(4, 4)
            session.change("train.py", edit((0, 8), (0, 8), "x\n\n"), edit((0, 0), (0, 0), "#"))
            [found] = await session.until("train.py", lambda shown: shown and shown[0].range.start.line == 6)
            session.change("train.py", edit((6, 4), (6, 18), "'\U0001f600', dist.barrier()"))
            [found] = await session.until("train.py", lambda shown: shown and shown[0].range.start.character != 4)
            assert found.range == types.Range(types.Position(6, 10), types.Position(6, 24))
            before = session.counts[session.uri("train.py")]
            for _ in range(30):
                session.change("train.py", edit((0, 0), (0, 0), "\n"))
            await session.until("train.py", lambda shown: shown and shown[0].range.start.line == 36)
            assert session.counts[session.uri("train.py")] == before + 1
            session.close_file("train.py")
            await session.until("train.py", lambda shown: not shown)

    asyncio.run(scenario())


@pytest.mark.parametrize("text", [f"\ufeff{BAD}", BAD.replace("\n", "\r\n"), f"# -*- coding: latin-1 -*-\n{BAD}"])
def test_a_mark_or_other_line_ends_change_nothing(tmp_path: Path, text: str) -> None:
    async def scenario() -> None:
        async with lsp_session(tmp_path) as session:
            session.open("train.py", text)
            [found] = await session.until("train.py", len)
            line = next(number for number, each in enumerate(text.split("\n")) if "barrier" in each)
            assert (found.range.start, found.range.end.character) == (types.Position(line, 4), 18)
            [action] = await session.actions("train.py", line)
            assert "ignore[collective" in applied(text, action)

    asyncio.run(scenario())


def test_half_written_code_keeps_what_was_said_and_a_new_file_says_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lsp_session(tmp_path) as session:
            session.open("broken.py", "import torch.distributed as dist\nif dist.get_rank( == 0:\n")
            session.open("train.py", BAD)
            await session.until("train.py", len)
            session.change("train.py", edit((4, 0), (4, 0), "def f(:\n"))
            assert await session.actions("train.py", 3) == []  # its place may be another one by now
            session.change("train.py", edit((4, 0), (5, 0), "x = 1\n"), edit((0, 0), (0, 0), "\n"))
            await session.until("train.py", lambda shown: shown and shown[0].range.start.line == 4)
            assert session.published.get(session.uri("broken.py"), []) == []

    asyncio.run(scenario())


def test_settings_switch_lints_off(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lsp_session(tmp_path, lint={"disabledRules": ["collective-on-some-ranks"]}) as session:
            session.open("train.py", BAD)
            for lint, count in (({}, 1), ({"enabled": False}, 0), ({"enabled": True}, 1), ("nonsense", 1)):
                params = types.DidChangeConfigurationParams(settings={"lint": lint})
                session.client.workspace_did_change_configuration(params)
                await session.until("train.py", lambda shown, count=count: len(shown) == count)  # type: ignore[misc]

    asyncio.run(scenario())


def test_a_long_file_keeps_nobody_waiting_and_is_looked_at_when_left_alone(tmp_path: Path) -> None:
    long = "x = 1\n" * 50_000 + BAD

    async def scenario() -> None:
        async with lsp_session(tmp_path) as session:
            session.open("long.py", long)
            for _ in range(50):
                session.change("long.py", edit((0, 0), (0, 0), "\n"))
            session.open("short.py", BAD)
            await session.until("short.py", len)
            await session.until("long.py", lambda shown: shown and shown[0].range.start.line == 50_053)
            assert session.counts[session.uri("long.py")] <= 2

    asyncio.run(scenario())


def test_it_ends_when_its_editor_is_gone(tmp_path: Path) -> None:
    async def scenario() -> None:
        session = LspSession(tmp_path)
        await session.start()
        server = session.client._server
        assert server is not None and server.stdin is not None
        server.stdin.close()
        assert await asyncio.wait_for(server.wait(), 20) == 0

    asyncio.run(scenario())


# --- findings -------------------------------------------------------------------------------------


def test_findings_of_the_newest_run_are_shown_with_each_ranks_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("a\n    b = 1\n")
    run = begin_run(tmp_path, "20260101-000000-1-a")
    place = {"path": str(tmp_path / "train.py"), "line": 2}
    note(run, label="world 0", **place, text="ValueError: loss 4.0 in step 3")
    note(run, label="world 1", **place, text="ValueError: loss 5.5 in step 3", isFirst=False, severity="information")
    lost = {"isFirst": False, "isEcho": True, "severity": "information", "text": "RuntimeError: connection closed"}
    for rank in (2, 3):
        note(run, label=f"world {rank}", path=str(tmp_path / "train.py"), line=1, **lost)

    async def scenario() -> None:
        async with lsp_session(tmp_path, readme=str(README)) as session:
            [found] = await session.until("train.py", len)
            assert found.message == "world 0, world 1 failed: ValueError: loss 4.0 in step 3 (2 times)"
            assert (found.code, found.severity) == ("crash", types.DiagnosticSeverity.Error)
            assert found.range.start.line == 1
            assert found.code_description is not None
            [related] = found.related_information or ()
            assert related.message == "world 2, world 3: RuntimeError: connection closed"
            assert related.location.range.start.line == 0
            actions = {action.title: action.command for action in await session.actions("train.py", 1)}
            assert list(actions) == ["Break on the deviating ranks", "Open post-mortem"]
            breaks = actions["Break on the deviating ranks"]
            assert breaks is not None
            [where] = breaks.arguments or ()
            assert where == {"uri": session.uri("train.py"), "lineNumber": 2, "ranks": "world/0,1"}
            # the next run clears it, and shows what it finds itself while it goes on
            following = begin_run(tmp_path, "20260101-000001-1-a")
            await session.until("train.py", lambda shown: not shown)
            note(following, **place, kind="divergence", severity="warning", text="w differs")
            [found] = await session.until("train.py", len)
            assert (found.code, found.message) == ("divergence", "w differs")

    asyncio.run(scenario())


def test_lines_move_with_edits_until_the_next_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("a = 1\nb = 2\n")
    note(begin_run(tmp_path, "1"), path=str(tmp_path / "train.py"), line=2)

    async def scenario() -> None:
        async with lsp_session(tmp_path) as session:
            session.open("train.py", "a = 1\nb = 2\n")
            await session.until("train.py", len)
            session.change("train.py", edit((1, 0), (1, 0), "\n\n"))
            [found] = await session.until("train.py", lambda shown: shown[0].range.start.line == 3)
            assert found.range.end.character == 5
            session.change("train.py", edit((0, 5), (2, 0), ""))
            await session.until("train.py", lambda shown: shown[0].range.start.line == 1)
            session.change("train.py", edit((0, 0), (0, 0), "\n"))
            saved = types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(session.uri("train.py")))
            session.client.text_document_did_save(saved)
            await session.until("train.py", lambda shown: shown[0].range.start.line == 2)
            note(begin_run(tmp_path, "2"), path=str(tmp_path / "train.py"), line=1)
            await session.until("train.py", lambda shown: shown and shown[0].range.start.line == 0)

    asyncio.run(scenario())


def test_findings_are_cleared_and_tensors_ignored_for_good(tmp_path: Path) -> None:
    run = begin_run(tmp_path, "1")
    place = {"path": str(tmp_path / "train.py"), "line": 1, "kind": "divergence"}
    (tmp_path / "train.py").write_text("x\n")
    note(run, **place, details={"tensor": "layer.weight", "expression": "layer.weight"}, ranks="2", text="one")
    note(run, **place, details={"tensor": "layer.bias"}, ranks="1-x", text="two")

    async def first(session: LspSession) -> None:
        await session.until("train.py", lambda shown: len(shown) == 2)
        offered = [action.command for action in await session.actions("train.py", 0) if action.command is not None]
        titles = [command.title for command in offered]
        assert titles.count("Ignore this tensor") == 2
        assert titles.count("Break on the deviating ranks") == 1, "a set that cannot be read is not offered"
        assert offered[titles.index("Compare across ranks")].arguments == ("layer.weight",)
        ignore = offered[titles.index("Ignore this tensor")]
        await session.execute(ignore.command, ignore.arguments or ())
        [left] = await session.until("train.py", lambda shown: len(shown) == 1)
        assert left.message == "two"

    async def second(session: LspSession) -> None:
        [left] = await session.until("train.py", len)
        assert left.message == "two"
        await session.execute("rankscope.server.clearFindings")
        await session.until("train.py", lambda shown: not shown)

    async def third(session: LspSession) -> None:
        note(run, **place, text="three", at=200.0)
        [left] = await session.until("train.py", len)
        assert left.message == "three"

    async def scenario() -> None:
        for part in (first, second, third):
            async with lsp_session(tmp_path) as session:
                await part(session)

    asyncio.run(scenario())


def test_files_of_copies_and_other_nodes_are_found_here(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    for name in ("train.py", "pkg/model.py", "mapped.py"):
        (tmp_path / name).write_text("x\n")
    run = begin_run(tmp_path, "1", pathMappings=[[str(tmp_path), "/elsewhere/code"], "nonsense"])
    copy = "/tmp/ray/session_1/runtime_resources/working_dir_files/_ray_pkg_1/train.py"
    for path, text in [
        (copy, "copy"),
        ("/home/other/project/pkg/model.py", "node"),
        ("/elsewhere/code/mapped.py", "mapped"),
        ("/gone/nowhere.py", "gone"),
        ("/usr/lib/site-packages/train.py", "installed"),
        ("", "no place"),
    ]:
        note(run, path=path, line=1, text=text, kind="leak")

    async def scenario() -> None:
        async with lsp_session(tmp_path) as session:
            for name, text in [("train.py", "copy"), ("pkg/model.py", "node"), ("mapped.py", "mapped")]:
                [found] = await session.until(name, len)
                assert found.message == text
            left = await session.until(".rankscope/runs/1/run.json", len)
            assert [each.message for each in left] == [
                "gone (at /gone/nowhere.py:1, which is not here)",
                "installed (at /usr/lib/site-packages/train.py:1, which is not here)",
                "no place",
            ]

    asyncio.run(scenario())


def test_a_damaged_record_is_told_and_the_rest_shown(tmp_path: Path) -> None:
    run = begin_run(tmp_path, "1")
    (tmp_path / "train.py").write_text("x\n")
    note(run, path=str(tmp_path / "train.py"), line=1, details={"places": [1, {"path": 2}], "tensor": []}, label=["x"])
    with (run / "findings.msgpack").open("ab") as file:
        file.write(b"\xa7RS\nrubbish")

    async def scenario() -> None:
        async with lsp_session(tmp_path) as session:
            await session.until("train.py", len)
            [told] = await session.until(".rankscope/runs/1/run.json", len)
            assert "damaged" in told.message

    asyncio.run(scenario())
