"""Find the Helm charts of a jobs repository, which are beside its jobs and layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from jobgen.engine.inputs import list_folder
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo import git
from jobgen.repo.commit import CommitPath, Folder
from jobgen.repo.files import CHART_METADATA, DEPENDENCY_FOLDERS, FileEntry, is_package
from jobgen.repo.lock import TREE
from jobgen.repo.root import SETTINGS, SOURCE_FOLDERS
from jobgen.repo.walk import CHART_FOLDERS, VENDOR_LISTS

MAX_SEARCHED = 50_000
"""How many files and folders are looked at."""
_OWN = frozenset((*SOURCE_FOLDERS, TREE))
_NOT_OWN = frozenset((".git", "pyvenv.cfg", SETTINGS))
"""What is in a folder that is another repository, or an environment of Python."""


class FoundCharts(NamedTuple):
    """The charts of a repository."""

    paths: list[str]
    """Their `Chart.yaml`, from the root."""
    archives: list[str]
    """What is a packaged chart by its name."""
    is_complete: bool
    """False if the repository has too many files to look at all of them."""


def find_charts(root: Folder, is_left_out: Callable[[str], bool]) -> FoundCharts:
    """Find the charts of a repository beside the folders that jobgen reads, the nearest first; links are not followed.

    Only the names in folders decide, so that it is the same on disk and in a commit.
    """
    found: list[str] = []
    archives: list[str] = []
    pending, count = [""], 0
    for folder in pending:
        names = dict(_list_names(root, folder))
        count += len(names)
        if count > MAX_SEARCHED:
            return FoundCharts(found, archives, is_complete=False)
        if folder and (not _NOT_OWN.isdisjoint(names) or _is_vendored(folder, names)):
            continue
        prefix = f"{folder}/" if folder else ""
        is_chart = names.get(CHART_METADATA) is False
        found += [f"{prefix}{CHART_METADATA}"] if is_chart else []
        archives += sorted(f"{prefix}{name}" for name, is_folder in names.items() if not is_folder and is_package(name))
        for name in sorted(name for name, is_folder in names.items() if is_folder):
            is_other = name.startswith(".") or name in DEPENDENCY_FOLDERS or (is_chart and name in CHART_FOLDERS)
            if not is_other and (folder or name not in _OWN) and not is_left_out(f"{prefix}{name}"):
                pending.append(f"{prefix}{name}")
    return FoundCharts(found, archives, is_complete=True)


def report_limit(path: str) -> FileEntry:
    """Return the info that there may be charts which were not found."""
    message = (
        f"beside `jobs/` are more than {MAX_SEARCHED:,} files, so not all of them were searched for Helm charts; "
        "`exclude` folders without charts"
    )
    found = Finding("unjudged-chart", "meta", Severity.INFO, message, Location(path))
    return FileEntry(f"{path}/charts", finding=found)


def _is_vendored(folder: str, names: dict[str, bool]) -> bool:
    return folder.rpartition("/")[2] == "vendor" and any(name in names for name in VENDOR_LISTS)


def _list_names(root: Folder, folder: str) -> Iterator[tuple[str, bool]]:
    """Yield the names in a folder, and whether they are folders; none if it cannot be read."""
    place = root / folder if folder else root
    if isinstance(place, CommitPath):
        # A folder that Git itself would not write has no charts.
        with suppress(git.GitError):
            entry = place.find_entry()
            listed = place.commit.list_folder(entry, place.path) if entry else {}
            yield from ((name, each.is_folder) for name, each in listed.items())
        return
    with suppress(OSError):
        yield from ((entry.name, entry.is_dir(follow_symlinks=False)) for entry in list_folder(str(place)))
