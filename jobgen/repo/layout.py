"""The layout of a repository. Only this module finds and reads the files of a repository, on disk or in a commit."""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, overload

from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_BYTES, MAX_WALKED_BYTES, MAX_WALKED_ENTRIES, MAX_WALKED_FILES
from jobgen.repo.atomic import links_outside
from jobgen.repo.commit import Commit, CommitPath, Entry, Folder
from jobgen.repo.exclude import ExcludePattern
from jobgen.repo.lock import KUSTOMIZATION, LOCK

SETTINGS = "jobgen.yaml"
_WORKFLOWS = (".github", "workflows")
_SCHEMA_NAME = lazy_pattern(r"(?:[a-z0-9][a-z0-9.-]{0,252}/){0,2}[a-z0-9_]{1,128}\.json")
_SOURCE_FOLDERS = ("jobs", "overlays", "policies", "runtimes", "schemas")
_OWN_SCHEMA = lazy_pattern(r"schemas/(?P<group>[^/]+)/[^/_]+_(?P<version>v[a-z0-9]+)\.json")
_OWN_GROUP = "jobgen.dev"
_SUFFIXES = (".yaml", ".yml", ".json")
_STATE = lazy_pattern(
    r"""\bstate["']?[ \t]*:[ \t]*["']?([^\s"'#,}\]][^"'#,}\]\r\n]*?)["']?[ \t]*(?:[#,}\]\r\n]|$)""", re.MULTILINE
)
_BASELINE = lazy_pattern(r'\s*\{\s*"version":\s*[0-9]+,\s*"(?:findings|paths)":\s*\[')
_BASELINE_START = 200
"""Bytes at the start of a file that show whether it is a baseline."""

_LINKED_FOLDER = "a symbolic link to a folder; it is not followed"
_LINK_NOWHERE = "a symbolic link that leads nowhere"
_SUBMODULE = "a submodule; its files are not part of the commit"


class File(NamedTuple):
    """A file of the repository: its path from the root, and its content or the finding that explains its absence."""

    path: str
    content: bytes = b""
    finding: Finding | None = None


class FileEntry(NamedTuple):
    """A file that was found but not read yet, or the finding that explains why it is not read."""

    path: str
    full: str = ""
    finding: Finding | None = None
    content: bytes | None = None
    skipped: str = ""
    """Why the file, or the folder, is not read: one of the reasons below."""
    optional: bool = False
    """Whether the file may be something else than a manifest: it was found in a folder that holds any files."""


HIDDEN = "hidden"
OTHER_EXTENSION = "other extension"
DEPENDENCIES = "dependencies"
OTHER_REPOSITORY = "other Git repository"
HELM_CHART = "Helm chart"
LOCK_FILE = "lock file"
EXCLUDED = "excluded"

# Folders that package managers fill.
_DEPENDENCY_FOLDERS = frozenset(("node_modules", "__pycache__", "site-packages", "venv", "bower_components"))
_CHART_FOLDERS = frozenset(("charts", "templates"))
_BACKUPS = ("~", ".bak", ".disabled", ".dist", ".example", ".off", ".old", ".orig", ".rej", ".sample", ".swp")
_HEAD_BYTES = 4096
# The first line of a document, in YAML or JSON, that is one of Kubernetes or of jobgen.
_OBJECT_START = lazy_pattern(
    r"(?:\xef\xbb\xbf)?(?:[ \t]*(?:#[^\n]*|---[^\n]*)?\r?\n)*"
    r"(?:[ \t]*\{\s*\"(?:apiVersion|kind)\"|(?:apiVersion|kind|metadata)[ \t]*:)",
    re.IGNORECASE,
)


_edited: ContextVar[Mapping[str, bytes]] = ContextVar("edited", default=MappingProxyType({}))


@contextmanager
def edited(contents: Mapping[str, bytes]) -> Iterator[None]:
    """Read some files, by their real paths, with other contents than those on disk."""
    token = _edited.set(contents)
    try:
        yield
    finally:
        _edited.reset(token)


@overload
def find_root(start: Path) -> Path | None: ...
@overload
def find_root(start: CommitPath) -> CommitPath | None: ...
@overload
def find_root(start: Folder) -> Folder | None: ...
def find_root(start: Folder) -> Folder | None:
    """The nearest folder at or above `start` with a jobgen.yaml; otherwise `start` if it has jobs/ or overlays/."""
    folder: Folder
    for folder in (start, *start.parents):
        if has_settings(folder):
            return folder
    return start if any(_is_there(start / name, os.path.isdir) for name in ("jobs", "overlays")) else None


def has_settings(folder: Folder) -> bool:
    """Whether a folder has a jobgen.yaml of settings; in `.github/workflows`, a file of that name is a workflow."""
    return tuple(folder.parts[-2:]) != _WORKFLOWS and _is_there(folder / SETTINGS, os.path.isfile)


def _is_there(path: Folder, check: Callable[[str], bool]) -> bool:
    """Whether a path is a file, or a folder; what is in a folder that cannot be read is not there."""
    if isinstance(path, CommitPath):
        return path.is_file() if check is os.path.isfile else path.is_dir()
    return check(str(path))


def find_files_of_other_repositories(files: Iterable[str], root: Folder) -> set[str]:
    """The files that belong to the jobs of a repository other than `root`, and were found from outside of it."""
    top = str(root.resolve())
    known: dict[str, bool] = {}
    found: set[str] = set()
    for file in files:
        folder = os.path.dirname(os.path.realpath(file) if os.path.islink(file) else file)
        if folder not in known:
            known[folder] = _is_in_other_repository(os.path.realpath(folder), top)
        if known[folder]:
            found.add(file)
    return found


def _is_in_other_repository(folder: str, top: str) -> bool:
    for each in (folder, *map(str, Path(folder).parents)):
        if each == top:
            return False
        if has_settings(Path(each)) or os.path.basename(each) == "jobs":
            return True
    return False


def is_source_folder(root: Path, folder: Path) -> bool:
    """Whether a folder is one of the folders that jobgen reads, or inside one."""
    full = os.path.realpath(folder)
    sources = (os.path.realpath(root / name) for name in _SOURCE_FOLDERS)
    return any(os.path.commonpath([full, source]) == source for source in sources)


BUILT_IN = "built-in:"
"""The beginning of the path of a file that comes with jobgen, where a repository does not have it."""


def find_shipped(name: str) -> Path:
    """A folder that is shipped with jobgen: inside the wheel, or next to the package in a checkout."""
    package = Path(__file__).parent.parent
    inside = package / "data" / name
    return inside if inside.is_dir() else package.parent / name


def is_manifest_name(path: str) -> bool:
    """Whether a file may be a manifest by its name: it is YAML or JSON, and not hidden."""
    return path.endswith(_SUFFIXES) and not any(part.startswith(".") for part in path.split("/"))


def find_jobs(root: Folder) -> Iterator[FileEntry]:
    """Find all files under jobs/, ordered by path."""
    return _walk(root, "jobs", _SUFFIXES)


def find_sources(root: Folder, top: str) -> Iterator[FileEntry]:
    """Find all files under jobs/, overlays/, policies/, runtimes/ or schemas/, also those that are skipped.

    A skipped file that holds an object has a finding: its author expects that it is read.
    """
    for entry in _walk_all(root, top, _SUFFIXES):
        is_top = top == "schemas" and entry.path.count("/") == 1 and not (entry.skipped or entry.finding)
        if is_top and starts_object(entry):
            message = "the file is not read; move it to the folder of its API group, `schemas/<group>/`"
            yield unread_path(entry.path, message)
        elif entry.skipped == OTHER_EXTENSION and not entry.path.endswith(_BACKUPS) and starts_object(entry):
            message = "the file holds an object but is not read; its name must end in `.yaml`, `.yml` or `.json`"
            yield unread_path(entry.path, message)
        else:
            yield entry


def starts_object(entry: FileEntry) -> bool:
    """Whether a file begins as a manifest or a job spec does."""
    if entry.content is not None or not entry.full:
        return _OBJECT_START.match((entry.content or b"")[:_HEAD_BYTES].decode("latin-1")) is not None
    try:
        if not stat.S_ISREG(os.stat(entry.full).st_mode):
            return False
        with open(entry.full, "rb", buffering=0) as stream:
            return _OBJECT_START.match(stream.read(_HEAD_BYTES).decode("latin-1")) is not None
    except OSError:
        return False


def list_starter_frameworks() -> list[str]:
    """The frameworks that `jobgen init` has an example job for."""
    return [os.path.basename(entry.path).removesuffix(".yaml") for entry in find_jobs(find_shipped("starter"))]


def find_manifests(folder: Folder, path: str) -> Iterator[FileEntry]:
    """Find the manifests at a path, which may be outside of a jobs repository: a file, or all files below a folder."""
    return (entry for entry in find_files(folder, path) if not entry.skipped)


def find_files(folder: Folder, path: str, is_excluded: Callable[[str], bool] = lambda _: False) -> Iterator[FileEntry]:
    """Find the manifests at a path, and what is skipped there. A file that is named is skipped only if it is excluded.

    As for kubectl, hidden files in a folder are manifests too.
    """
    if isinstance(folder, CommitPath):
        for entry in _find_committed_manifests(folder, path):
            yield FileEntry(entry.path, skipped=EXCLUDED) if is_excluded(entry.path) else entry
        return
    full = os.path.join(folder, path)
    root = find_root(Path(folder).resolve())
    if root is not None and links_outside(full, root):
        yield _link_outside(path)
        return
    if not os.path.lexists(full):
        yield missing_path(path)
        return
    if not os.path.isdir(full):
        # The files that jobgen writes next to the objects of a tree may be named like others, by a hook for example.
        excluded = EXCLUDED if is_excluded(path) else ""
        yield FileEntry(path, full, skipped=excluded, optional=_is_own_output(full))
        return
    inside = os.path.realpath(full) + os.sep
    base = os.path.normpath(path).replace(os.sep, "/")
    found: list[FileEntry] = []
    size = 0
    for count, entry in enumerate(_walk_folder(full, base, _SUFFIXES, inside, is_excluded, any_files=True)):
        found.append(_without_dot(entry) if base == "." else entry)
        size += _file_size(entry)
        if count >= MAX_WALKED_ENTRIES or size > MAX_WALKED_BYTES:
            yield _too_many_files(path)
            return
    if sum(not entry.skipped for entry in found) > MAX_WALKED_FILES:
        yield _too_many_files(path)
    else:
        yield from found


def find_unmatched_patterns(root: Folder, patterns: Sequence[ExcludePattern]) -> list[ExcludePattern]:
    """The patterns that match nothing in a repository; none if it has too many files to tell."""
    left = list(patterns)
    every = (path for path, _ in root.walk()) if isinstance(root, CommitPath) else _list_paths(str(root))
    for count, path in enumerate(every):
        left = [pattern for pattern in left if not pattern.matches(path)]
        if not left or count > MAX_WALKED_ENTRIES:
            return []
    return left


def _list_paths(root: str) -> Iterator[str]:
    """The paths of all files of a repository, except those of Git."""
    pending = [(root, "")]
    while pending:
        full, path = pending.pop()
        with suppress(OSError):
            for entry, inner, below in _list_folder(full, path):
                if entry.is_dir(follow_symlinks=False):
                    pending += [(inner, below)] if entry.name != ".git" else []
                else:
                    yield below[1:]


def missing_path(path: str) -> FileEntry:
    """The entry of a path that was named and does not exist."""
    return _with_finding(path, "unreadable-file", "there is no such file or folder; check the path")


def unread_path(path: str, message: str) -> FileEntry:
    """The entry of a path that was named and is not read."""
    return _with_finding(path, "unread-file", message, "meta")


def _without_dot(entry: FileEntry) -> FileEntry:
    path = entry.path.removeprefix("./")
    finding = entry.finding and entry.finding._replace(location=Location(path))
    return entry._replace(path=path, finding=finding)


def _is_own_output(full: str) -> bool:
    """Whether a file is one that jobgen writes next to the objects of a rendered tree, or a baseline of any name."""
    folder, name = os.path.split(full)
    if name == KUSTOMIZATION:
        return os.path.exists(os.path.join(folder, LOCK))
    return name == LOCK or (name.endswith(".json") and _is_baseline(full))


def _is_baseline(full: str) -> bool:
    try:
        if not stat.S_ISREG(os.stat(full).st_mode):
            return False
        with open(full, "rb", buffering=0) as stream:
            return _BASELINE.match(stream.read(_BASELINE_START).decode("latin-1")) is not None
    except OSError:
        return False


def _file_size(entry: FileEntry) -> int:
    try:
        return 0 if entry.skipped or entry.finding else os.stat(entry.full).st_size
    except OSError:
        return 0


def _too_many_files(path: str) -> FileEntry:
    message = (
        f"the folder holds more than {MAX_WALKED_FILES:,} manifests, {MAX_WALKED_ENTRIES:,} files or "
        f"{MAX_WALKED_BYTES // 1024**3} GiB, so nothing in it was checked; name the folders that hold manifests"
    )
    return _with_finding(path, "too-many-files", message, "meta")


def read_overlays(root: Folder) -> Iterator[tuple[str, File]]:
    """Read all files of overlays/<env>/; yield the name of the environment with each."""
    for entry in _walk(root, "overlays", _SUFFIXES):
        parts = entry.path.split("/")
        yield (parts[1] if len(parts) > 2 else ""), read_file(entry)


def read_runtimes(root: Folder) -> Iterator[File]:
    """Read the runtimes of TrainJobs, in runtimes/."""
    return map(read_file, _walk(root, "runtimes", _SUFFIXES))


def read_kinds(root: Folder) -> Iterator[File]:
    """Read the kind descriptions: the shipped ones, then those of the repository, which override them."""
    home = find_shipped("schemas").parent
    if home != root:
        yield from map(_mark_built_in, read_own_kinds(home))
    yield from read_own_kinds(root)


def _mark_built_in(file: File) -> File:
    return file._replace(path=f"{BUILT_IN}{file.path}")


def read_own_kinds(root: Folder) -> Iterator[File]:
    """Read the kind descriptions of a repository, each in the folder of its group."""
    for entry in _walk(root, "schemas", (".yaml", ".yml")):
        if entry.finding or entry.path.count("/") > 1:
            yield read_file(entry)


def read_own_schemas(root: Folder) -> Iterator[tuple[str, File]]:
    """Read the JSON Schemas of kinds that a repository has, each with its apiVersion."""
    if find_shipped("schemas").parent == root:
        return
    for entry in _walk(root, "schemas", (".json",)):
        found = _OWN_SCHEMA.fullmatch(entry.path)
        if found and found["group"] != _OWN_GROUP:
            yield f"{found['group']}/{found['version']}", read_file(entry)


def read_layers(root: Folder) -> Iterator[File]:
    """Read all files of a repository that are written by hand, except jobs: overlays, kinds, policies, settings."""
    for top in ("overlays", "schemas", "policies", "runtimes"):
        for entry in _walk(root, top, (".yaml", ".yml")):
            yield read_file(entry)
    found = read_settings(root)
    if found:
        yield found


def read_state(root: Folder, folder: str) -> Iterator[File]:
    """Read the exported state of a cluster: all manifests below a folder of the repository."""
    if not folder_exists(root, folder):
        return
    if isinstance(root, Path) and links_outside(root / folder, root):
        yield read_file(_link_outside(folder))
        return
    size = 0
    for count, entry in enumerate(_walk(root, folder, _SUFFIXES)):
        size += _file_size(entry) if entry.content is None else len(entry.content)
        if count >= MAX_WALKED_FILES or size > MAX_WALKED_BYTES:
            yield read_file(_too_many_files(folder))
            return
        yield read_file(entry)


def folder_exists(root: Folder, folder: str) -> bool:
    """Whether there is a folder at a path from the root."""
    return _is_there(root / folder, os.path.isdir)


def find_state_folders(root: Folder) -> frozenset[str]:
    """The folders that the text of overlays and settings names as `state`, which may be more than are in effect."""
    settings = read_settings(root)
    files = [*(file for _, file in read_overlays(root)), *([settings] if settings else ())]
    return frozenset(folder for file in files for folder in _list_state_folders(file.content))


def _list_state_folders(content: bytes) -> list[str]:
    if b"state" not in content:
        return []
    texts = (match[1] for match in _STATE.finditer(content.decode("utf-8", "replace")))
    return [text.strip("/") for text in texts if ".." not in text and not text.startswith((".", "/"))]


def read_inputs(root: Folder) -> Iterator[File]:
    """Read everything but jobs that a lint depends on: the files of the repository and the shipped ones."""
    folders: set[str] = set()
    for top in ("overlays", "policies", "runtimes", "schemas"):
        for file in map(read_file, _walk(root, top, _SUFFIXES)):
            folders.update(_list_state_folders(file.content) if top == "overlays" else ())
            yield file
    found = read_settings(root)
    if found:
        folders.update(_list_state_folders(found.content))
        yield found
    for folder in sorted(folders):
        yield from read_state(root, folder)
    home = find_shipped("schemas").parent
    for top in ("policies", "schemas") if home != root else ():
        # Shipped files change only with jobgen, which their size and time show.
        yield from map(_read_stat, _walk(home, top, _SUFFIXES))


def _read_stat(entry: FileEntry) -> File:
    """A file with its size and time instead of its content."""
    try:
        status = os.stat(entry.full)
    except OSError:
        return File(entry.path)
    return File(entry.path, f"{status.st_size} {status.st_mtime_ns}".encode())


def read_schema(root: Folder, name: str) -> File | None:
    """Read the JSON Schema that a repository has for a kind; the name comes from a manifest, so it is untrusted."""
    if ".." in name or os.path.isabs(name):
        return None
    path = f"schemas/{name}"
    if isinstance(root, CommitPath):
        is_own = (root / path).is_file() or (root / path).leads_out()
        return read_file(_read_committed(root / path, path, root)) if is_own else None
    full = os.path.join(root, path)
    return read_path(full, path, root) if os.path.isfile(full) else None


def read_shipped_schema(name: str) -> bytes | None:
    """Read a file of the shipped schemas; the name may be derived from a manifest, so it is untrusted."""
    if not _SCHEMA_NAME.fullmatch(name):
        return None
    try:
        return (find_shipped("schemas") / name).read_bytes()
    except OSError:
        return None


def list_shipped_schemas(folder: str) -> list[str]:
    """List the files of a folder of the shipped schemas."""
    return sorted(entry.name for entry in os.scandir(find_shipped("schemas") / folder))


def read_shipped_policies(root: Folder) -> Iterator[File]:
    """Read the shipped policies, except those that a file of the repository with the same name replaces."""
    home = find_shipped("policies").parent
    own = {entry.path for entry in _find_policies(root)}
    shipped = (read_file(entry) for entry in _find_policies(home) if home != root and entry.path not in own)
    yield from map(_mark_built_in, shipped)


def read_own_policies(root: Folder) -> Iterator[File]:
    """Read the policies of a repository, with their params and namespaces."""
    return map(read_file, _find_policies(root))


def find_policy_tests(root: Folder) -> Iterator[FileEntry]:
    """Find the test cases of policies, in a folder for each policy under policies/tests/."""
    return _walk(root, "policies/tests", _SUFFIXES)


def _find_policies(root: Folder) -> Iterator[FileEntry]:
    for entry in _walk(root, "policies", _SUFFIXES):
        if entry.finding or not entry.path.startswith("policies/tests/"):
            yield entry


def read_types() -> bytes:
    """Read the types that kind descriptions share."""
    return (find_shipped("schemas") / "types.yaml").read_bytes()


def read_settings(root: Folder) -> File | None:
    """Read the settings file, if there is one."""
    if isinstance(root, CommitPath):
        file = root / SETTINGS
        return read_file(_read_committed(file, SETTINGS, root)) if file.exists() or file.leads_out() else None
    return read_path(root / SETTINGS, SETTINGS, root) if (root / SETTINGS).exists() else None


def read_path(full: Path | str, path: str, home: Path) -> File:
    """Read a file at any path; it is not read if a link leads out of the repository."""
    return read_file(_link_outside(path) if links_outside(full, home) else FileEntry(path, str(full)))


def read_file(entry: FileEntry) -> File:
    """Read the content of a file; the result has a finding if that is not possible."""
    path, full, finding, content, *_ = entry
    if finding or content is not None:
        return File(path, content or b"", finding)
    try:
        status = os.stat(full)
        if not stat.S_ISREG(status.st_mode):
            return _unreadable(path, "unreadable-file", "not a regular file")
        if status.st_size > MAX_BYTES:
            return File(path, finding=_too_large(path, status.st_size).finding)
        edited = _edited.get()
        if edited and (draft := edited.get(os.path.realpath(full))) is not None:
            return File(path, draft)
        with open(full, "rb", buffering=0) as stream:
            return File(path, stream.read())
    except OSError as error:
        is_broken_link = os.path.islink(full) and not os.path.exists(full)
        return _unreadable(
            path,
            "unreadable-file",
            _LINK_NOWHERE if is_broken_link else f"cannot be read: {error.strerror}",
        )


def read_lines(folders: Iterable[Path], path: str) -> list[str]:
    """Read the lines of a file that has a finding; none if it cannot be read."""
    found = read_first(folders, path)
    return found.content.decode("utf-8", "replace").split("\n") if found else []


def read_first(folders: Iterable[Folder], path: str) -> File | None:
    """Read the file at a path in the first folder where it can be read."""
    for folder in folders:
        if isinstance(folder, CommitPath):
            found = read_file(_read_committed(folder / path, path, folder.resolve()))
        else:
            found = read_path(os.path.join(folder, path), path, folder)
        if not found.finding:
            return found
    return None


def _walk(root: Folder, top: str, suffixes: tuple[str, ...]) -> Iterator[FileEntry]:
    """Find regular files below a folder, ordered by path; links that lead out of the repository become findings."""
    return (entry for entry in _walk_all(root, top, suffixes) if not entry.skipped)


def _walk_all(root: Folder, top: str, suffixes: tuple[str, ...]) -> Iterator[FileEntry]:
    if isinstance(root, CommitPath):
        yield from _walk_committed(root, top, suffixes)
        return
    inside = os.path.join(os.path.realpath(root), "")
    full = os.path.join(root, top)
    if os.path.islink(full) and not os.path.realpath(full).startswith(inside):
        yield _link_outside(top)
    elif os.path.isdir(full):
        yield from _walk_folder(full, top, suffixes, inside)


def _walk_folder(
    full: str,
    path: str,
    suffixes: tuple[str, ...],
    inside: str,
    is_excluded: Callable[[str], bool] = lambda _: False,
    *,
    any_files: bool = False,
) -> Iterator[FileEntry]:
    """Find the files below a folder, and what is skipped there.

    With `any_files`, the folder is not one of jobgen: hidden files are read, and folders of others are skipped.
    """
    # Folders may be nested deeper than Python's stack allows, so pending ones are kept in a list.
    pending: list[tuple[os.DirEntry[str] | None, str, str]] = [(None, full, path)]
    while pending:
        entry, full, path = pending.pop()
        if entry is not None and is_excluded(path):
            yield FileEntry(path, full, skipped=EXCLUDED)
        elif entry is None or entry.is_dir(follow_symlinks=False):
            reason = _skip_folder(entry, full, any_files=any_files) if entry is not None else ""
            if reason:
                yield FileEntry(path, full, skipped=reason)
                continue
            try:
                pending += _list_folder(full, path)
            except OSError as error:
                yield _with_finding(path, "unreadable-file", f"the folder cannot be read: {error.strerror}")
        elif entry.name.startswith(".") and not (any_files and path.lower().endswith(suffixes) and entry.is_file()):
            yield FileEntry(path, full, skipped=HIDDEN)
        elif entry.is_symlink() and os.path.isdir(full):
            yield _linked_folder(full, path, inside)
        elif path.lower().endswith(suffixes):
            leads_out = entry.is_symlink() and not os.path.realpath(full).startswith(inside)
            yield _link_outside(path) if leads_out else FileEntry(path, full, optional=any_files)
        else:
            yield FileEntry(path, full, skipped=OTHER_EXTENSION)


def _skip_folder(entry: os.DirEntry[str], full: str, *, any_files: bool) -> str:
    """Return why a folder is not entered, or an empty string."""
    if entry.name.startswith("."):
        return HIDDEN
    if not any_files:
        return ""
    if entry.name in _DEPENDENCY_FOLDERS or os.path.exists(os.path.join(full, "pyvenv.cfg")):
        return DEPENDENCIES
    if os.path.lexists(os.path.join(full, ".git")):
        return OTHER_REPOSITORY
    is_template = entry.name in _CHART_FOLDERS
    return HELM_CHART if is_template and os.path.isfile(os.path.join(os.path.dirname(full), "Chart.yaml")) else ""


def _list_folder(full: str, path: str) -> Iterator[tuple[os.DirEntry[str], str, str]]:
    """The entries of a folder, last first."""
    with os.scandir(full) as found:
        entries = sorted(found, key=lambda entry: entry.name, reverse=True)
    return ((entry, entry.path, f"{path}/{entry.name}") for entry in entries)


def _walk_committed(root: CommitPath, top: str, suffixes: tuple[str, ...]) -> Iterator[FileEntry]:
    folder, inside = root / top, root.resolve()
    home = folder.resolve()
    if folder.is_symlink() and not home.is_relative_to(inside):
        yield _link_outside(top)
    elif folder.is_dir():
        for below, entry in folder.walk():
            if below.rpartition("/")[2].startswith("."):
                yield FileEntry(f"{top}/{below}", skipped=HIDDEN)
            elif entry.is_file or entry.is_link:
                yield _find_committed(home / below, entry, f"{top}/{below}", suffixes, inside)
            else:
                yield _with_finding(f"{top}/{below}", "unreadable-file", _SUBMODULE)


def _find_committed_manifests(folder: CommitPath, path: str) -> Iterator[FileEntry]:
    full = folder / path
    root = find_root(folder.resolve())
    is_inside = root is not None and posixpath.normpath(full.path).startswith(posixpath.join(root.path, ""))
    if not (full.exists() or full.is_symlink()):
        yield missing_path(path)
        return
    if not full.is_dir():
        is_metadata = full.name == LOCK or (full.name == KUSTOMIZATION and (full.parents[0] / LOCK).exists())
        found = _read_committed(full, path, root if root and is_inside else CommitPath(folder.commit))
        yield found._replace(optional=is_metadata)
        return
    top = full.resolve()
    if root and is_inside and not top.is_relative_to(root):
        yield _link_outside(path)
        return
    base = posixpath.normpath(path)
    for below, entry in top.walk():
        shown = below if base == "." else f"{base}/{below}"
        if not (entry.is_file or entry.is_link):
            yield FileEntry(shown, skipped=OTHER_REPOSITORY)
        elif reason := _skip_committed(top, below):
            yield FileEntry(shown, skipped=reason)
        else:
            yield _find_committed(top / below, entry, shown, _SUFFIXES, top)._replace(optional=True)


def _skip_committed(top: CommitPath, below: str) -> str:
    """Return why a file of a commit is not read, as `_skip_folder` does on disk."""
    folders = below.split("/")[:-1]
    if not _DEPENDENCY_FOLDERS.isdisjoint(folders):
        return DEPENDENCIES
    charts = [
        "/".join((*folders[:index], "Chart.yaml")) for index, name in enumerate(folders) if name in _CHART_FOLDERS
    ]
    return HELM_CHART if any((top / chart).exists() for chart in charts) else ""


def _find_committed(
    file: CommitPath, entry: Entry, path: str, suffixes: tuple[str, ...], inside: CommitPath
) -> FileEntry:
    """Read a file or link of a commit, as `_walk_folder` finds it on disk."""
    if entry.is_link and file.is_dir():
        is_inside = file.resolve().is_relative_to(inside)
        return _with_finding(path, "linked-folder", _LINKED_FOLDER) if is_inside else _link_outside(path)
    if path.lower().endswith(suffixes) or (entry.is_link and file.leads_out()):
        return _read_object(file.commit, entry, path) if entry.is_file else _read_committed(file, path, inside)
    content = _read_object(file.commit, entry, path).content if entry.is_file else None
    return FileEntry(path, content=content, skipped=OTHER_EXTENSION)


def _read_committed(file: CommitPath, path: str, inside: CommitPath) -> FileEntry:
    """Read a file of a commit; links lead to other files of the same folder only."""
    if not file.resolve().is_relative_to(inside):
        return _link_outside(path)
    entry = file.find_entry()
    if entry is None or not entry.is_file:
        return _with_finding(path, "unreadable-file", _LINK_NOWHERE if file.is_symlink() else "not a regular file")
    return _read_object(file.commit, entry, path)


def _read_object(commit: Commit, entry: Entry, path: str) -> FileEntry:
    size = commit.measure_file(entry, path)
    return _too_large(path, size) if size > MAX_BYTES else FileEntry(path, content=commit.read_file(entry, path))


def _linked_folder(full: str, path: str, inside: str) -> FileEntry:
    if not (os.path.realpath(full) + os.sep).startswith(inside):
        return _link_outside(path)
    return _with_finding(path, "linked-folder", _LINKED_FOLDER)


def _link_outside(path: str) -> FileEntry:
    message = "a symbolic link that leads out of the repository; it is not followed"
    return _with_finding(path, "link-out-of-repository", message)


def _too_large(path: str, size: int) -> FileEntry:
    shown, limit = size // 1024 // 1024, MAX_BYTES // 1024 // 1024
    return _with_finding(path, "file-too-large", f"{shown} MiB is too large for a manifest; the limit is {limit} MiB")


def _with_finding(path: str, rule: str, message: str, category: str = "yaml") -> FileEntry:
    return FileEntry(path, finding=Finding(rule, category, Severity.ERROR, message, Location(path)))


def _unreadable(path: str, rule: str, message: str) -> File:
    return File(path, finding=_with_finding(path, rule, message).finding)
