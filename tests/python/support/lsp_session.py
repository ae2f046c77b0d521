"""`python -m rankscope.lsp` with a client of the real protocol, over stdio."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Union

from cattrs import Converter
from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.protocol import default_converter

SECONDS = 20.0
COMMANDS = ["rankscope.breakOnRanks", "rankscope.compare", "rankscope.openRun"]


def _converter() -> Converter:
    """lsprotocol takes every action that has a command for a bare command."""
    converter: Converter = default_converter()  # type: ignore[no-untyped-call]

    def action(value: Any, _: Any) -> Any:
        is_command = isinstance(value.get("command"), str)
        return converter.structure(value, types.Command if is_command else types.CodeAction)

    converter.register_structure_hook(Union[types.Command, types.CodeAction], action)  # noqa: UP007 - as lsprotocol has it
    return converter


class LspSession:
    """What the server has published, by URI, and the requests that an editor makes."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.client = LanguageClient("test", "1", converter_factory=_converter)
        self.published: dict[str, list[types.Diagnostic]] = {}
        self.counts: dict[str, int] = {}
        self._news = asyncio.Condition()
        self._version = 0

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        async def _published(params: types.PublishDiagnosticsParams) -> None:
            async with self._news:
                self.published[params.uri] = list(params.diagnostics)
                self.counts[params.uri] = self.counts.get(params.uri, 0) + 1
                self._news.notify_all()

    async def start(self, **options: Any) -> None:
        await self.client.start_io(sys.executable, "-m", "rankscope.lsp")
        folder = types.WorkspaceFolder(self.workspace.as_uri(), self.workspace.name)
        await self.client.initialize_async(
            types.InitializeParams(
                capabilities=types.ClientCapabilities(),
                workspace_folders=[folder],
                root_uri=folder.uri,
                initialization_options={"commands": COMMANDS, **options},
            )
        )
        self.client.initialized(types.InitializedParams())

    async def close(self) -> int | None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        server = self.client._server
        assert server is not None
        await asyncio.wait_for(server.wait(), SECONDS)
        with contextlib.suppress(Exception):
            await self.client.stop()  # type: ignore[no-untyped-call]
        return server.returncode

    def uri(self, name: str) -> str:
        return (self.workspace / name).as_uri()

    def open(self, name: str, text: str, language: str = "python") -> None:
        self._version += 1
        item = types.TextDocumentItem(self.uri(name), language, self._version, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def change(self, name: str, *changes: types.TextDocumentContentChangeEvent) -> None:
        self._version += 1
        document = types.VersionedTextDocumentIdentifier(version=self._version, uri=self.uri(name))
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, list(changes)))

    def close_file(self, name: str) -> None:
        document = types.TextDocumentIdentifier(self.uri(name))
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(document))

    async def until(self, name: str, holds: Callable[[list[types.Diagnostic]], object]) -> list[types.Diagnostic]:
        """What is published of a file, once it is so."""
        uri = self.uri(name)
        async with self._news:
            try:
                await asyncio.wait_for(
                    self._news.wait_for(lambda: uri in self.published and holds(self.published[uri])), SECONDS
                )
            except (TimeoutError, asyncio.TimeoutError):
                raise AssertionError(f"{name}: {self.published}") from None
            return self.published[uri]

    async def actions(self, name: str, line: int) -> list[types.CodeAction]:
        at = types.Range(types.Position(line, 0), types.Position(line, 0))
        answer = await self.client.text_document_code_action_async(
            types.CodeActionParams(types.TextDocumentIdentifier(self.uri(name)), at, types.CodeActionContext([]))
        )
        return [action for action in answer or () if isinstance(action, types.CodeAction)]

    async def execute(self, command: str, arguments: Sequence[Any] = ()) -> None:
        params = types.ExecuteCommandParams(command=command, arguments=list(arguments))
        await self.client.workspace_execute_command_async(params)


@contextlib.asynccontextmanager
async def lsp_session(workspace: Path, **options: Any) -> AsyncIterator[LspSession]:
    """A server that has read the workspace; it ends by itself, with 0, when its client says so."""
    session = LspSession(workspace)
    await session.start(**options)
    try:
        yield session
    finally:
        code = await session.close()
    assert code == 0, code
