"""Create the server with its features, and run it."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lsprotocol import types
from pygls.uris import to_fs_path

from jobgen.editor.server import actions, completion, diagnostics, documents, hover, navigation, symbols
from jobgen.editor.server.app import JobgenServer

log = logging.getLogger("jobgen.lsp")

FEATURES = (documents, diagnostics, completion, symbols, navigation, hover, actions)
"""The modules that answer requests. Each has a function `register`."""


def create_server() -> JobgenServer:
    """Create the server with all its features."""
    server = JobgenServer()
    server.feature(types.INITIALIZED)(partial(_open_folders, server))
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(partial(_change_folders, server))
    server.feature(types.SHUTDOWN)(partial(_stop, server))
    for module in FEATURES:
        module.register(server)
    return server


def _open_folders(server: JobgenServer, _: types.InitializedParams) -> None:
    for folder in server.workspace.folders.values():
        _change_folder(server.open_folder, folder)
    if not server.workspace.folders and server.workspace.root_path:
        server.open_folder(Path(server.workspace.root_path))


def _change_folders(server: JobgenServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
    for folder in params.event.removed:
        _change_folder(server.close_folder, folder)
    for folder in params.event.added:
        _change_folder(server.open_folder, folder)


def _change_folder(change: Callable[[Path], object], folder: types.WorkspaceFolder) -> None:
    path = to_fs_path(folder.uri)
    if path and Path(path).is_dir():
        change(Path(path))
    else:
        log.warning("the folder %s is not on this machine, so it is not linted", folder.uri)


def _stop(server: JobgenServer, _: object) -> None:
    for opened in server.workspaces.values():
        opened.worker.stop()


def run_server() -> None:
    """Serve on standard input and output until the client ends."""
    # The command line disables it, because its other commands end soon.
    gc.enable()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    server = create_server()
    try:
        server.start_io()
    finally:
        _stop(server, None)
