"""The folders of the editor, and the jobs repositories inside of them."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from pathlib import Path

from lsprotocol import types
from pygls.uris import to_fs_path

from jobgen.features.editor.server import diagnostics, documents, rendered
from jobgen.features.editor.server.app import JobgenServer, guard
from jobgen.repo.root import has_settings
from jobgen.repo.walk import find_folders

log = logging.getLogger("jobgen.lsp")

MAX_REPOSITORIES = 16
"""How many repositories inside of a folder are linted before one of their files is opened. Each has its own process."""


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
                closed = self._server.close_workspace(root)
                if closed:
                    diagnostics.clear(self._server, closed)


def register(server: JobgenServer) -> None:
    """Follow the folders of the editor."""
    folders = _Folders(server)
    server.feature(types.INITIALIZED)(partial(_open_folders, server, folders))
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(partial(_change_folders, server, folders))


def _open_folders(server: JobgenServer, folders: _Folders, _: types.InitializedParams) -> None:
    documents.watch_files(server)
    rendered.provide_content(server)
    for folder in server.workspace.folders.values():
        _add(folders, folder)
    if not server.workspace.folders and server.workspace.root_path:
        folders.add(Path(server.workspace.root_path))


def _change_folders(server: JobgenServer, folders: _Folders, params: types.DidChangeWorkspaceFoldersParams) -> None:
    # Added first: a repository that a new folder needs, too, stays open.
    for folder in params.event.added:
        _add(folders, folder)
    for folder in params.event.removed:
        path = to_fs_path(folder.uri)
        if path:
            folders.remove(Path(path))
    if params.event.added:
        server.notify_folders()


def _add(folders: _Folders, folder: types.WorkspaceFolder) -> None:
    path = to_fs_path(folder.uri) if folder.uri.startswith("file:") else None
    if path and Path(path).is_dir():
        folders.add(Path(path))
    else:
        log.warning("the folder %s is not on this machine, so it is not linted", folder.uri)
