"""Find objects for jobgen at the root, or in folders with almost the name of one of its folders: nothing reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from jobgen.engine.inputs import is_link, read_start
from jobgen.model.lazy_re import lazy_pattern
from jobgen.repo.exclude import ExcludePattern, is_excluded
from jobgen.repo.files import DEPENDENCY_FOLDERS, MANIFEST_SUFFIXES, FileEntry, report_unread_path
from jobgen.repo.root import SOURCE_FOLDERS, has_settings
from jobgen.repo.walk import list_paths, walk_files

_CUTOFF = 0.7
_MAX_SEARCHED = 200
_HEAD_BYTES = 2000
_OBJECT = lazy_pattern(
    r"""(?m)^(?:apiVersion:[ \t]*["']?jobgen\.dev/"""
    r"""|kind:[ \t]*["']?(?:\w+AdmissionPolicy|(?:Cluster)?TrainingRuntime)\b)"""
)
_OWN = lazy_pattern(r"""(?m)^apiVersion:[ \t]*["']?jobgen\.dev/""")
_KIND = lazy_pattern(r"""(?m)^kind:[ \t]*["']?(\w+)""")
_FOLDERS = {"TrainingJob": "jobs", "Overlay": "overlays", "Team": "teams", "JobTests": "tests"}


def find_misnamed(root: Path, patterns: Sequence[ExcludePattern]) -> Iterator[FileEntry]:
    """Return a finding for each file at the root, and for each such folder; `patterns` are what the settings exclude.

    The finding of a folder is at its first object.
    """
    try:
        paths = list_paths(str(root), "")
    except OSError:
        return
    files = [path for path in paths if path.endswith(MANIFEST_SUFFIXES) and not is_excluded(path, patterns)]
    for path in files[:_MAX_SEARCHED]:
        folder = _find_folder(root / path)
        if folder:
            yield report_unread_path(path, f"the file is not read; move it to `{folder}/`, or list it in `exclude`")
    for name in (path[:-1] for path in paths if path.endswith("/")):
        if name in (*SOURCE_FOLDERS, *DEPENDENCY_FOLDERS) or has_settings(root / name):
            continue
        meant = _find_meant(name)
        path = _find_object(root, name, patterns) if meant else ""
        if path:
            message = f"the file is not read: jobgen reads `{meant}/`, not `{name}/`; move it, or list it in `exclude`"
            yield report_unread_path(path, message)


def _find_folder(path: Path) -> str:
    """Return the folder that the first object of a file belongs in; empty if it is none of jobgen, or a link."""
    if is_link(str(path)):
        return ""
    text = read_start(str(path), _HEAD_BYTES).decode("utf-8", "replace")
    kind = _KIND.search(text) if _OWN.search(text) else None
    return _FOLDERS.get(kind[1], "") if kind else ""


def _find_meant(name: str) -> str:
    """Return the folder of jobgen that a name is a misspelling of; empty if it is none."""
    if not any(_share_letters(name.lower(), folder) for folder in SOURCE_FOLDERS):
        return ""
    # Imported late: most folders have other names.
    from jobgen.model.suggest import find_closest

    return find_closest(name, list(SOURCE_FOLDERS), _CUTOFF)


def _share_letters(one: str, other: str) -> bool:
    """Whether two names have enough letters in common to be similar."""
    return 2 * sum((Counter(one) & Counter(other)).values()) >= _CUTOFF * (len(one) + len(other))


def _find_object(root: Path, folder: str, patterns: Sequence[ExcludePattern]) -> str:
    """Return the first file of a folder with an object for jobgen; empty if there is none among the first files."""
    for entry in islice(walk_files(root, folder, MANIFEST_SUFFIXES), _MAX_SEARCHED):
        if is_excluded(entry.path, patterns):
            continue
        if _OBJECT.search(read_start(entry.full, _HEAD_BYTES).decode("utf-8", "replace")):
            return entry.path
    return ""
