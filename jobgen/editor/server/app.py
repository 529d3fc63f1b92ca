"""The server and its workspaces."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from jobgen.editor.server.worker import Worker
from jobgen.editor.snapshot import Snapshot
from jobgen.editor.workspace import Workspace

log = logging.getLogger("jobgen.lsp")


class OpenWorkspace:
    """A workspace of the editor, its background process, and who wants to know about new results."""

    def __init__(self, folder: Path, notify: Callable[[OpenWorkspace], None]) -> None:
        self.workspace = Workspace(folder)
        self._notify = notify
        self.worker = Worker(self.workspace.root, self._take)

    @property
    def is_current(self) -> bool:
        """Whether the background process has linted the files as they are now."""
        return self.workspace.snapshot.number == self.worker.number

    def request_lint(self, delay: float = 0) -> None:
        """Lint everything in the background, with the contents of open documents."""
        self.worker.request(self.workspace.drafts, delay)

    def _take(self, snapshot: Snapshot) -> None:
        self.workspace.take(snapshot)
        if snapshot.error:
            log.warning("the workspace %s was not linted: %s", self.workspace.root, snapshot.error)
        self._notify(self)


class JobgenServer(LanguageServer):
    """The language server of jobgen."""

    def __init__(self) -> None:
        super().__init__("jobgen", version("jobgen"), types.TextDocumentSyncKind.Incremental)
        self.workspaces: dict[Path, OpenWorkspace] = {}
        self.listeners: list[Callable[[OpenWorkspace], None]] = []
        """Called when a workspace has new results."""

    def find_workspace(self, uri: str) -> tuple[OpenWorkspace, str] | None:
        """Return the workspace of a document, and its path from the root; None for other documents.

        A document outside of the editor's folders has a workspace of its own: its jobs repository, or its folder.
        """
        full = to_fs_path(uri) if uri.startswith("file:") else None
        if full is None:
            return None
        best: tuple[OpenWorkspace, str] | None = None
        for opened in self.workspaces.values():
            file = opened.workspace.find_relative(full)
            if file is not None and (best is None or len(file) < len(best[1])):
                best = opened, file
        if best is None and Path(full).parent.is_dir():
            opened = self.open_folder(Path(full).parent)
            file = opened.workspace.find_relative(full)
            best = (opened, file) if file is not None else None
        return best

    def open_folder(self, folder: Path) -> OpenWorkspace:
        """Open a folder, unless its repository is open already."""
        opened = OpenWorkspace(folder, self._notify)
        known = self.workspaces.setdefault(opened.workspace.root, opened)
        if known is opened:
            known.request_lint()
        return known

    def close_folder(self, folder: Path) -> None:
        """Close a folder."""
        opened = self.workspaces.pop(Workspace(folder).root, None)
        if opened:
            opened.worker.stop()

    def _notify(self, opened: OpenWorkspace) -> None:
        for listener in self.listeners:
            listener(opened)

    def find_uri(self, opened: OpenWorkspace, file: str) -> str:
        """Return the URI of a file of a workspace."""
        return from_fs_path(str(opened.workspace.root / file)) or ""
