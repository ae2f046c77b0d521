"""The language server over stdio: lints of open files, and the findings of the newest run of each workspace folder.

It polls the record, so it needs no debug session and no watcher of the client's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

import rankscope
from rankscope.lsp import actions, records
from rankscope.lsp.board import Board
from rankscope.lsp.diagnostics import Readme, of_finding, of_problems
from rankscope.lsp.documents import Document
from rankscope.lsp.findings import Shown, shown
from rankscope.lsp.lints import Unreadable, lint

_DEBOUNCE_SECONDS = 0.2
_POLL_SECONDS = 1.0
_MAX_TEXT = 20_000_000
_LANGUAGE = "python"

log = logging.getLogger(__name__)


class Server(LanguageServer):
    """Owns the open texts, what is published, a lint under way per file, and the task that polls; they end with it."""

    def __init__(self) -> None:
        super().__init__("rankscope", rankscope.__version__)
        self.board = Board(self._publish)
        self.documents: dict[str, Document] = {}
        self.readme = Readme(None)
        self.client_commands: frozenset[str] = frozenset()
        self.is_linting = True
        self.disabled: frozenset[str] = frozenset()
        self._lints: dict[str, asyncio.Task[None]] = {}
        self._linter = ThreadPoolExecutor(2, "lint")  # a long file does not keep a short one waiting
        self._signatures: dict[Path, records.Signature] = {}
        self._shown: dict[Path, list[Shown]] = {}
        self._poller: asyncio.Task[None] | None = None

    def _publish(self, uri: str, diagnostics: list[types.Diagnostic]) -> None:
        document = self.documents.get(uri)
        version = None if document is None else document.version
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, version))

    # --- settings ---------------------------------------------------------------------------------

    def configure(self, options: Any) -> None:
        """Take what the client sets: ``{"lint": {"enabled": bool, "disabledRules": [names]}}``."""
        settings = options.get("lint") if isinstance(options, dict) else None
        settings = settings if isinstance(settings, dict) else {}
        rules = settings.get("disabledRules")
        self.is_linting = settings.get("enabled") is not False
        self.disabled = frozenset(filter(lambda rule: isinstance(rule, str), rules if isinstance(rules, list) else ()))
        for uri in self.documents:
            self.lint_soon(uri, 0.0)

    # --- lints ------------------------------------------------------------------------------------

    def lint_soon(self, uri: str, seconds: float = _DEBOUNCE_SECONDS) -> None:
        """Lint a file when it was left alone for so long; what was under way for it is stale."""
        self._forget_lint(uri)
        self._lints[uri] = asyncio.ensure_future(self._lint(uri, seconds))

    def open(self, item: types.TextDocumentItem) -> None:
        """A file is opened."""
        self.documents[item.uri] = Document(item.text, item.version)
        if self._has_findings_in(item.uri):
            self._show_findings()
        self.lint_soon(item.uri, 0.0)

    def close(self, uri: str) -> None:
        """A file is closed: its lints go."""
        self._forget_lint(uri)
        self.documents.pop(uri, None)
        self.board.set_lints(uri, [])

    def _forget_lint(self, uri: str) -> None:
        if (task := self._lints.pop(uri, None)) is not None:
            task.cancel()

    async def _lint(self, uri: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        document = self.documents[uri]
        text, version = document.text, document.version
        if not self.is_linting or len(text) > _MAX_TEXT:
            if len(text) > _MAX_TEXT:
                log.warning("%s is too long to be looked at", uri)
            self.board.set_lints(uri, [])
            return
        loop, disabled = asyncio.get_running_loop(), self.disabled

        def work() -> list[types.Diagnostic]:
            return of_problems(uri, text, lint(text, disabled), self.readme)

        try:
            diagnostics = await loop.run_in_executor(self._linter, work)
        except Unreadable:
            return  # half written: what was said of it stays where the editor has moved it
        if self.documents.get(uri) is document and document.version == version:
            document.linted = version
            if self._has_findings_in(uri):
                self._show_findings()
            self.board.set_lints(uri, diagnostics)

    # --- findings ---------------------------------------------------------------------------------

    def begin(self) -> None:
        """Look for findings from now on."""
        self._poller = asyncio.ensure_future(self._poll())

    async def _poll(self) -> None:
        said = ""
        while True:
            try:
                await self.look()
                said = ""
            except Exception as e:  # it looks again, and says so once
                if str(e) != said:
                    said = str(e)
                    log.exception("the record cannot be read")
            await asyncio.sleep(_POLL_SECONDS)

    def folders(self) -> list[Path]:
        """The workspace's folders on this machine."""
        uris = [folder.uri for folder in self.workspace.folders.values()] or [self.workspace.root_uri or ""]
        return [Path(path) for uri in uris if (path := to_fs_path(uri))]

    async def look(self) -> None:
        """Read what has changed in the records, and publish."""
        folders = self.folders()
        now = {folder: await asyncio.to_thread(records.signature, folder) for folder in folders}
        if now == self._signatures:
            return
        for folder in folders:
            before = self._signatures.get(folder)
            if before == now[folder]:
                continue
            if before is not None and before[0] != now[folder][0]:
                for document in self.documents.values():
                    document.rebase()
            run = await asyncio.to_thread(records.newest_run, folder)
            self._shown[folder] = [] if run is None else await asyncio.to_thread(shown, run, folder)
        self._signatures = now
        self._shown = {folder: self._shown[folder] for folder in folders}
        self._show_findings()

    def _show_findings(self) -> None:
        """Publish what was read; lines in open files are those of now."""
        by_file: dict[str, list[types.Diagnostic]] = {}
        for entry in (entry for entries in self._shown.values() for entry in entries):
            uri = self._uri(entry.path)
            by_file.setdefault(uri, []).append(of_finding(entry, self.documents.get(uri), self.readme))
        self.board.set_findings(by_file)

    def _has_findings_in(self, uri: str) -> bool:
        """Whether a file has any."""
        return any(self._uri(entry.path) == uri for entries in self._shown.values() for entry in entries)

    def _uri(self, path: str) -> str:
        """As the client spells it, if the file is open."""
        uri = str(from_fs_path(path))
        return uri if uri in self.documents else next((o for o in self.documents if to_fs_path(o) == path), uri)

    def folder_of(self, record: str) -> Path | None:
        """The workspace folder that a run's folder is in."""
        return next((folder for folder in self.folders() if Path(record).is_relative_to(folder)), None)


server = Server()


@server.feature(types.INITIALIZE)
def _initialize(params: types.InitializeParams) -> None:
    server.workspace.update_text_document = lambda *_: None  # type: ignore[method-assign]  # see documents.py
    options = params.initialization_options if isinstance(params.initialization_options, dict) else {}
    readme = options.get("readme")
    server.readme = Readme(Path(readme) if isinstance(readme, str) else None)
    commands = options.get("commands")
    server.client_commands = frozenset(commands if isinstance(commands, list) else ())
    server.configure(options)


@server.feature(types.INITIALIZED)
def _initialized(_params: types.InitializedParams) -> None:
    server.begin()


@server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
def _configuration(params: types.DidChangeConfigurationParams) -> None:
    server.configure(params.settings)


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
def _opened(params: types.DidOpenTextDocumentParams) -> None:
    if params.text_document.language_id == _LANGUAGE:
        server.open(params.text_document)


@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
def _changed(params: types.DidChangeTextDocumentParams) -> None:
    uri = params.text_document.uri
    if uri in server.documents:
        server.documents[uri].change(params.content_changes, params.text_document.version)
        server.lint_soon(uri)


@server.feature(types.TEXT_DOCUMENT_DID_SAVE)
def _saved(params: types.DidSaveTextDocumentParams) -> None:
    if params.text_document.uri in server.documents:
        server.documents[params.text_document.uri].saved()


@server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
def _closed(params: types.DidCloseTextDocumentParams) -> None:
    server.close(params.text_document.uri)


@server.feature(
    types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
)
def _actions(params: types.CodeActionParams) -> list[types.CodeAction]:
    uri = params.text_document.uri
    document = server.documents.get(uri)
    found: Iterable[types.Diagnostic] = server.board.at(uri, params.range)
    return [each for one in found for each in actions.actions_for(uri, one, document, server.client_commands)]


@server.command(actions.CLEAR)
async def _clear() -> None:
    for folder in server.folders():
        records.clear(folder)
    await server.look()


@server.command(actions.IGNORE_TENSOR)
async def _ignore_tensor(name: str, record: str) -> None:
    folder = server.folder_of(record)
    if folder is not None:
        records.ignore_tensor(folder, name)
        await server.look()
