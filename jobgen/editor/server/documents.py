"""Open documents: what the editor sends about them, and the lints that follow."""

from __future__ import annotations

import asyncio
from functools import partial

from lsprotocol import types
from pygls.uris import to_fs_path

from jobgen.editor.server import diagnostics
from jobgen.editor.server.app import JobgenServer

_FILE_DELAY = 0.02
"""The pause after a keystroke before the file is linted: a client sends the keys of a fast typist one by one."""
_ALL_DELAY = 0.15
_WATCHED = ("**/*.yaml", "**/*.yml", "**/*.json")


def register(server: JobgenServer) -> None:
    """Follow the documents of the editor and the files on disk."""
    pending: dict[str, asyncio.TimerHandle] = {}
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(partial(_open, server, pending))
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(partial(_change, server, pending))
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(partial(_save, server, pending))
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(partial(_close, server, pending))
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(partial(_watch, server))


def _open(
    server: JobgenServer, pending: dict[str, asyncio.TimerHandle], params: types.DidOpenTextDocumentParams
) -> None:
    _use_text(server, pending, params.text_document.uri)


def _change(
    server: JobgenServer, pending: dict[str, asyncio.TimerHandle], params: types.DidChangeTextDocumentParams
) -> None:
    _use_text(server, pending, params.text_document.uri)


def _save(
    server: JobgenServer, pending: dict[str, asyncio.TimerHandle], params: types.DidSaveTextDocumentParams
) -> None:
    _use_text(server, pending, params.text_document.uri)


def _use_text(server: JobgenServer, pending: dict[str, asyncio.TimerHandle], uri: str) -> None:
    """Use the text of a document, and lint it soon: first the file by itself, then everything."""
    found = server.find_workspace(uri)
    if found is None:
        return
    opened, file = found
    opened.workspace.open(to_fs_path(uri) or "", server.workspace.get_text_document(uri).source)
    if uri in pending:
        pending[uri].cancel()
    show = partial(diagnostics.lint_document, server, opened, file)
    pending[uri] = asyncio.get_running_loop().call_later(_FILE_DELAY, show)
    opened.request_lint(_ALL_DELAY)


def _close(
    server: JobgenServer, pending: dict[str, asyncio.TimerHandle], params: types.DidCloseTextDocumentParams
) -> None:
    uri = params.text_document.uri
    found = server.find_workspace(uri)
    if uri in pending:
        pending.pop(uri).cancel()
    if found is not None:
        found[0].workspace.close(to_fs_path(uri) or "")
        found[0].request_lint(_ALL_DELAY)


def _watch(server: JobgenServer, params: types.DidChangeWatchedFilesParams) -> None:
    changed = [found[0] for event in params.changes if (found := server.find_workspace(event.uri))]
    for opened in dict.fromkeys(changed):
        opened.request_lint(_ALL_DELAY)
