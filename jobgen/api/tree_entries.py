"""The files and builds of a folder of manifests, as a lint of the folder judges them."""

from __future__ import annotations

import posixpath
from pathlib import Path

from jobgen.api.lint_files import LintRequest, resolve_files
from jobgen.repo.commit import CommitPath, Folder
from jobgen.repo.files import CHART_METADATA, FileEntry
from jobgen.repo.root import lacks_jobs


def list_tree_entries(home: Path, folder: Folder) -> list[FileEntry] | None:
    """Return what a folder holds; None if it has only files that are read one by one.

    `home` is the folder on disk if the folder is one of a commit. A chart is built with the values that the repository
    installs it with.
    """
    committed = folder if isinstance(folder, CommitPath) else None
    request = LintRequest(home if committed else Path(str(folder)), (".",), committed=committed, is_compared=True)
    files = resolve_files(request)
    if files.standalone is None:
        return None
    has_charts = any(posixpath.basename(entry.path) == CHART_METADATA for entry in files.standalone)
    root = files.root
    is_tree = root is not None and folder.resolve() == root and lacks_jobs(root)
    if not has_charts and not is_tree:
        return None
    # Imported late: most folders have no chart.
    from jobgen.api.recognized_files import recognize_files

    entries = recognize_files(request, files).entries
    return [entry for entry in entries if not (entry.build and entry.build.release) or _is_installed(entry)]


def _is_installed(entry: FileEntry) -> bool:
    release = entry.build.release if entry.build else None
    return release is not None and release.is_installed
