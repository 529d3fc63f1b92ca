"""The files and builds of a folder of manifests, as a lint of the folder judges them."""

from __future__ import annotations

import posixpath
from pathlib import Path

from jobgen.api.lint_files import LintRequest, find_sources, read_patterns
from jobgen.compare.snapshot import Snapshot, find_layers_around, join_charts, snapshot_entries
from jobgen.repo.chart_search import find_charts
from jobgen.repo.commit import CommitPath, Folder
from jobgen.repo.files import CHART_METADATA, FileEntry
from jobgen.repo.layout import Layers, own_layers
from jobgen.repo.root import lacks_jobs
from jobgen.repo.walk import is_excluded


def list_tree_entries(home: Path, folder: Folder, judged: Layers | None) -> list[FileEntry] | None:
    """Return what a folder holds; None if it has only files that are read one by one.

    `home` is the folder on disk if the folder is one of a commit. `judged` is as in a request. A chart is built
    with the values that the repository installs it with.
    """
    committed = folder if isinstance(folder, CommitPath) else None
    directory = home if committed else Path(str(folder))
    request = LintRequest(directory, (".",), committed=committed, is_compared=True, judged=judged)
    files = find_sources(request)
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


def add_charts(jobs: Snapshot, home: Path, today: str) -> Snapshot:
    """Return the snapshot of a jobs repository with what the charts beside its jobs make."""
    patterns = read_patterns(own_layers(jobs.folder))
    if not find_charts(jobs.folder, lambda path: is_excluded(path, patterns)).paths:
        return jobs
    entries = list_tree_entries(home, jobs.folder, None)
    if not entries:
        return jobs
    layers = find_layers_around(jobs.folder)
    return join_charts(jobs, snapshot_entries(jobs.folder, layers, jobs.name, entries, today))


def snapshot_changed_releases(
    home: Path, sides: tuple[Folder, Folder], days: tuple[str, str], judged: Layers | None
) -> list[Snapshot]:
    """Return the releases of charts that objects of a repository declare on two sides, as far as they differ.

    They are none if no side has any. Why one is not there any more is not known here: its object may have a wrong path.
    """
    listed = [_list_declared(home, side, judged) for side in sides]
    changed = [
        [entry for path, entry in own.items() if path not in other or other[path].content != entry.content]
        for own, other in zip(listed, reversed(listed), strict=True)
    ]
    kept = {_name_release(each) for each in listed[1].values()}
    changed[0] = [entry for entry in changed[0] if _name_release(entry) in kept]
    if not any(changed):
        return []
    described = zip(sides, ("old", "new"), changed, days, strict=True)
    return [
        snapshot_entries(side, _find_layers(side, judged), name, entries, day) for side, name, entries, day in described
    ]


def _find_layers(side: Folder, judged: Layers | None) -> Layers:
    own = find_layers_around(side)
    return judged if judged is not None and judged.root == own.root else own


def _name_release(entry: FileEntry) -> tuple[str, str, str]:
    release = entry.build.release if entry.build else None
    return (release.chart, release.name, release.by) if release else ("", "", "")


def _list_declared(home: Path, folder: Folder, judged: Layers | None) -> dict[str, FileEntry]:
    entries = list_tree_entries(home, folder, judged) or []
    return {each.path: each for each in entries if each.build and each.build.release and each.build.release.is_declared}


def _is_installed(entry: FileEntry) -> bool:
    release = entry.build.release if entry.build else None
    return release is not None and release.is_installed
