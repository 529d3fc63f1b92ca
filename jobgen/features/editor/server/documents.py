"""Open documents: what the editor sends about them, and the lints that follow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.uris import to_fs_path

from jobgen.features.editor.server import diagnostics, rendered
from jobgen.features.editor.server.app import JobgenServer, OpenWorkspace, guard, log
from jobgen.repo.root import has_settings
from jobgen.repo.walk import find_folders

_FILE_DELAY = 0.02
"""The pause after a keystroke before the file is linted: a client sends the keys of a fast typist one by one."""
_ALL_DELAY = 0.15
MAX_REPOSITORIES = 16
"""How many repositories inside of a folder are linted before one of their files is opened. Each has its own process."""
HALF_TYPED_DELAY = 3.0
"""How long after an edit a half-typed document keeps its findings and those of other files, so that none flickers."""
_SYNTAX_ERROR = "yaml-syntax"
_WATCHED = ("**/*.yaml", "**/*.yml", "**/*.json")


class _Documents:
    """The lints that are due, and the documents that are half typed."""

    def __init__(self, server: JobgenServer) -> None:
        self._server = server
        self._due: dict[str, asyncio.TimerHandle] = {}
        self._broken: dict[OpenWorkspace, dict[str, float]] = {}
        """The time of the last edit of a document that has a syntax error, by path from the root."""
        self._left: dict[OpenWorkspace, dict[str, None]] = {}
        """The documents that are to be linted because of an overlay, by path from the root."""

    def use_text(self, uri: str, *, is_saved: bool = False, is_closed: bool = False) -> None:
        """Use the text of a document, or the file on disk again, and lint it soon: first by itself, then everything."""
        document, found = self._server.find_document(uri), self._server.find_workspace(uri)
        if found is None or (document is None and not is_closed):
            return
        opened, file = found
        if document is None or is_closed:
            opened.workspace.close(to_fs_path(uri) or "")
        else:
            opened.uris[file] = uri
            opened.workspace.open(to_fs_path(uri) or "", document.source)
        opened.edited[file] = opened.worker.number + 1
        self._lint_soon(uri, partial(self._lint, opened, file, is_saved=is_saved or is_closed))

    def _lint_soon(self, uri: str, lint: Callable[[], object], delay: float = _FILE_DELAY) -> None:
        if uri in self._due:
            self._due[uri].cancel()
        self._due[uri] = asyncio.get_running_loop().call_later(delay, guard("diagnostics", lint))

    def _lint(self, opened: OpenWorkspace, file: str, *, is_saved: bool) -> None:
        uri = self._server.find_uri(opened, file)
        self._due.pop(uri, None)
        broken = self._broken.setdefault(opened, {})
        findings = diagnostics.lint_document(self._server, opened, file, is_complete=is_saved)
        is_open = self._server.find_document(uri) is not None
        if not is_open:
            opened.uris.pop(file, None)
            opened.alone.pop(file, None)
        if is_open and not is_saved and any(found.rule == _SYNTAX_ERROR for found in findings.own):
            broken[file] = time.monotonic()
        else:
            broken.pop(file, None)
        if file in opened.half_typed:
            self._lint_soon(uri, partial(self._lint, opened, file, is_saved=True), HALF_TYPED_DELAY)
        self.request_lint(opened)
        if not opened.workspace.is_job(file) and file not in broken:
            # An overlay concerns the other open documents.
            left = self._left.setdefault(opened, {})
            is_running = bool(left)
            left.update(dict.fromkeys(other for other in opened.uris if other != file))
            if left and not is_running:
                self._lint_next(opened)
        for listener in self._server.edit_listeners:
            guard("edits", listener)(opened)

    def request_lint(self, opened: OpenWorkspace) -> None:
        """Lint everything, but not while a document is half typed, unless it stays so."""
        begun = self._broken.get(opened, {}).values()
        wait = max((began + HALF_TYPED_DELAY - time.monotonic() for began in begun), default=0)
        opened.request_lint(max(wait, _ALL_DELAY))

    def _lint_next(self, opened: OpenWorkspace) -> None:
        """Lint the first document that is left. Messages of the editor are handled before the next one."""
        left = self._left[opened]
        file = next(iter(left))
        if file in opened.uris and opened.uris[file] not in self._due:
            guard("diagnostics", diagnostics.lint_document)(self._server, opened, file)
        del left[file]
        if left:
            asyncio.get_running_loop().call_soon(self._lint_next, opened)


def register(server: JobgenServer) -> None:
    """Follow the documents and folders of the editor, and the files on disk."""
    documents, folders = _Documents(server), _Folders(server)

    def use(params: Any, **state: bool) -> None:
        documents.use_text(params.text_document.uri, **state)

    def notice_changes(params: types.DidChangeWatchedFilesParams) -> None:
        # A change of a repository that no document is open of starts no process for it.
        changed = [opened for event in params.changes for opened in server.list_workspaces(event.uri)]
        for opened in dict.fromkeys(changed):
            documents.request_lint(opened)

    server.feature(types.INITIALIZED)(partial(_open_folders, server, folders))
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(use)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(use)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(partial(use, is_saved=True))
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(partial(use, is_closed=True))
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(notice_changes)
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(partial(_change_folders, server, folders, documents))


class _Folders:
    """The folders of the editor, each with the roots of the workspaces that it needs."""

    def __init__(self, server: JobgenServer) -> None:
        self._server = server
        self._roots: dict[Path, set[Path]] = {}
        self._searches: set[asyncio.Task[None]] = set()

    def add(self, folder: Path) -> None:
        """Open a folder, and soon the repositories inside of it."""
        opened = self._server.open_folder(folder)
        self._roots[folder] = {opened.workspace.root}
        for root, other in list(self._server.workspaces.items()):
            # A document that was opened before its folder was linted by itself.
            if not other.is_shared and root.is_relative_to(folder.resolve()):
                diagnostics.clear(self._server, self._server.workspaces.pop(root))
        search = asyncio.get_running_loop().create_task(guard("folders", self._open_inside)(folder))
        self._searches.add(search)
        search.add_done_callback(self._searches.discard)

    async def _open_inside(self, folder: Path) -> None:
        found = await asyncio.to_thread(find_folders, folder, MAX_REPOSITORIES + 1, has_settings)
        if len(found) > MAX_REPOSITORIES:
            log.warning(
                "%s holds more than %d jobs repositories; the others are linted when one of their files is opened",
                *(folder, MAX_REPOSITORIES),
            )
        for repository in found[:MAX_REPOSITORIES]:
            if folder in self._roots:
                self._roots[folder].add(self._server.open_folder(repository).workspace.root)

    def remove(self, folder: Path) -> None:
        """Close a folder, and the workspaces that no other folder needs."""
        for root in self._roots.pop(folder, set()):
            if not any(root in roots for roots in self._roots.values()):
                closed = self._server.workspaces.pop(root, None)
                if closed:
                    closed.worker.stop()
                    diagnostics.clear(self._server, closed)


def _open_folders(server: JobgenServer, folders: _Folders, _: types.InitializedParams) -> None:
    # The editor reports changed files; if it cannot, the background processes look for them.
    workspace = server.client_capabilities.workspace
    watched = workspace.did_change_watched_files if workspace else None
    server.watches = watched is None or not watched.dynamic_registration
    if not server.watches:
        watchers = [types.FileSystemWatcher(pattern) for pattern in _WATCHED]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        wanted = types.Registration("jobgen-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
        server.client_register_capability(types.RegistrationParams([wanted]))
    rendered.provide_content(server)
    for folder in server.workspace.folders.values():
        _add(folders, folder)
    if not server.workspace.folders and server.workspace.root_path:
        folders.add(Path(server.workspace.root_path))


def _change_folders(
    server: JobgenServer, folders: _Folders, documents: _Documents, params: types.DidChangeWorkspaceFoldersParams
) -> None:
    # Added first: a repository that a new folder needs, too, stays open.
    for folder in params.event.added:
        _add(folders, folder)
    for folder in params.event.removed:
        path = to_fs_path(folder.uri)
        if path:
            folders.remove(Path(path))
    if params.event.added:
        # The workspaces of open documents may be others now.
        for uri in list(server.workspace.text_documents):
            documents.use_text(uri)


def _add(folders: _Folders, folder: types.WorkspaceFolder) -> None:
    path = to_fs_path(folder.uri) if folder.uri.startswith("file:") else None
    if path and Path(path).is_dir():
        folders.add(Path(path))
    else:
        log.warning("the folder %s is not on this machine, so it is not linted", folder.uri)
