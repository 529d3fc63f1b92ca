"""The layout of a repository. Only this module walks folders and reads the files of a repository."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.model.limits import MAX_BYTES
from jobgen.repo.atomic import links_outside
from jobgen.repo.lock import KUSTOMIZATION, LOCK

SETTINGS = "jobgen.yaml"
_SOURCE_FOLDERS = ("jobs", "overlays", "policies", "schemas")
_SUFFIXES = (".yaml", ".yml", ".json")


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


def find_root(start: Path) -> Path | None:
    """The nearest folder at or above `start` with a jobgen.yaml; otherwise `start` if it has jobs/ or overlays/."""
    for folder in (start, *start.parents):
        if (folder / SETTINGS).is_file():
            return folder
    return start if (start / "jobs").is_dir() or (start / "overlays").is_dir() else None


def is_source_folder(root: Path, folder: Path) -> bool:
    """Whether a folder is one of the folders that jobgen reads, or inside one."""
    full = os.path.realpath(folder)
    sources = (os.path.realpath(root / name) for name in _SOURCE_FOLDERS)
    return any(os.path.commonpath([full, source]) == source for source in sources)


def find_shipped(name: str) -> Path:
    """A folder that is shipped with jobgen: inside the wheel, or next to the package in a checkout."""
    package = Path(__file__).parent.parent
    inside = package / "data" / name
    return inside if inside.is_dir() else package.parent / name


def find_jobs(root: Path) -> Iterator[FileEntry]:
    """Find all files under jobs/, ordered by path."""
    return _walk(root, "jobs", _SUFFIXES)


def list_starter_frameworks() -> list[str]:
    """The frameworks that `jobgen init` has an example job for."""
    return [os.path.basename(entry.path).removesuffix(".yaml") for entry in find_jobs(find_shipped("starter"))]


def find_manifests(folder: Path, path: str) -> Iterator[FileEntry]:
    """Find the manifests at a path, which may be outside of a jobs repository: a file, or all files below a folder."""
    full = os.path.join(folder, path)
    root = find_root(Path(folder).resolve())
    if root is not None and links_outside(full, root):
        yield _link_outside(path)
        return
    if not os.path.isdir(full):
        yield FileEntry(path, full)
        return
    inside = os.path.realpath(full) + os.sep
    base = os.path.normpath(path).replace(os.sep, "/")
    for entry in _walk_folder(full, base, _SUFFIXES, inside):
        if not entry.full.endswith((LOCK, KUSTOMIZATION)) or not _is_tree_metadata(entry.full):
            yield entry._replace(path=entry.path.removeprefix("./")) if base == "." else entry


def _is_tree_metadata(full: str) -> bool:
    """Whether a file is one that jobgen writes next to the objects of a rendered tree."""
    folder, name = os.path.split(full)
    return name == LOCK or (name == KUSTOMIZATION and os.path.exists(os.path.join(folder, LOCK)))


def read_overlays(root: Path) -> Iterator[tuple[str, File]]:
    """Read all files of overlays/<env>/; yield the name of the environment with each."""
    for entry in _walk(root, "overlays", _SUFFIXES):
        parts = entry.path.split("/")
        yield (parts[1] if len(parts) > 2 else ""), read_file(entry)


def read_kinds(root: Path) -> Iterator[File]:
    """Read the kind descriptions: the shipped ones, then those of the repository, which override them."""
    home = find_shipped("schemas").parent
    if home != root:
        yield from read_own_kinds(home)
    yield from read_own_kinds(root)


def read_own_kinds(root: Path) -> Iterator[File]:
    """Read the kind descriptions of a repository, each in the folder of its group."""
    for entry in _walk(root, "schemas", (".yaml",)):
        if entry.finding or entry.path.count("/") > 1:
            yield read_file(entry)


def read_layers(root: Path) -> Iterator[File]:
    """Read all files of a repository that are written by hand, except jobs: overlays, kinds, policies, settings."""
    for top in ("overlays", "schemas", "policies"):
        for entry in _walk(root, top, (".yaml", ".yml")):
            yield read_file(entry)
    found = read_settings(root)
    if found:
        yield found


def read_inputs(root: Path) -> Iterator[File]:
    """Read everything but jobs that a lint depends on: the files of the repository and the shipped ones."""
    for top in ("overlays", "policies", "schemas"):
        yield from map(read_file, _walk(root, top, _SUFFIXES))
    found = read_settings(root)
    if found:
        yield found
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


class SchemaFile(NamedTuple):
    """The JSON Schema of a kind, and whether it is shipped; a schema of the repository is untrusted."""

    file: File
    is_shipped: bool


def read_schema(root: Path, name: str) -> SchemaFile | None:
    """Read the JSON Schema of a kind: that of the repository, or the shipped one."""
    for home in (root, find_shipped("schemas").parent):
        entry = FileEntry(f"schemas/{name}", os.path.join(home, "schemas", name))
        # The name is derived from a manifest, so it is untrusted.
        if ".." not in name and not os.path.isabs(name) and os.path.isfile(entry.full):
            return SchemaFile(read_path(entry.full, entry.path, home), home == find_shipped("schemas").parent)
    return None


def read_shipped_policies(root: Path) -> Iterator[File]:
    """Read the shipped policies, except those that a file of the repository with the same name replaces."""
    home = find_shipped("policies").parent
    own = {entry.path for entry in _find_policies(root)}
    yield from (read_file(entry) for entry in _find_policies(home) if home != root and entry.path not in own)


def read_own_policies(root: Path) -> Iterator[File]:
    """Read the policies of a repository, with their params and namespaces."""
    return map(read_file, _find_policies(root))


def find_policy_tests(root: Path) -> Iterator[FileEntry]:
    """Find the test cases of policies, in a folder for each policy under policies/tests/."""
    return _walk(root, "policies/tests", _SUFFIXES)


def _find_policies(root: Path) -> Iterator[FileEntry]:
    for entry in _walk(root, "policies", _SUFFIXES):
        folders = entry.path.split("/")[1:-1]
        if entry.finding or folders in ([], ["params"], ["namespaces"]):
            yield entry


def read_types() -> bytes:
    """Read the types that kind descriptions share."""
    return (find_shipped("schemas") / "types.yaml").read_bytes()


def read_settings(root: Path) -> File | None:
    """Read the settings file, if there is one."""
    return read_path(root / SETTINGS, SETTINGS, root) if (root / SETTINGS).exists() else None


def read_path(full: Path | str, path: str, home: Path) -> File:
    """Read a file at any path; it is not read if a link leads out of the repository."""
    return read_file(_link_outside(path) if links_outside(full, home) else FileEntry(path, str(full)))


def read_file(entry: FileEntry) -> File:
    """Read the content of a file; the result has a finding if that is not possible."""
    path, full, finding, content = entry
    if finding or content is not None:
        return File(path, content or b"", finding)
    try:
        status = os.stat(full)
        if not stat.S_ISREG(status.st_mode):
            return _unreadable(path, "unreadable-file", "not a regular file")
        if status.st_size > MAX_BYTES:
            size, limit = status.st_size // 1024 // 1024, MAX_BYTES // 1024 // 1024
            return _unreadable(
                path, "file-too-large", f"{size} MiB is too large for a manifest; the limit is {limit} MiB"
            )
        with open(full, "rb", buffering=0) as stream:
            return File(path, stream.read())
    except OSError as error:
        is_broken_link = os.path.islink(full) and not os.path.exists(full)
        return _unreadable(
            path,
            "unreadable-file",
            "a symbolic link that leads nowhere" if is_broken_link else f"cannot be read: {error.strerror}",
        )


def read_lines(folders: Iterable[Path], path: str) -> list[str]:
    """Read the lines of a file that has a finding; none if it cannot be read."""
    for folder in folders:
        found = read_path(os.path.join(folder, path), path, folder)
        if not found.finding:
            return found.content.decode("utf-8", "replace").split("\n")
    return []


def _walk(root: Path, top: str, suffixes: tuple[str, ...]) -> Iterator[FileEntry]:
    """Find regular files below a folder, ordered by path; links that lead out of the repository become findings."""
    inside = os.path.join(os.path.realpath(root), "")
    full = os.path.join(root, top)
    if os.path.islink(full) and not os.path.realpath(full).startswith(inside):
        yield _link_outside(top)
    elif os.path.isdir(full):
        yield from _walk_folder(full, top, suffixes, inside)


def _walk_folder(full: str, path: str, suffixes: tuple[str, ...], inside: str) -> Iterator[FileEntry]:
    # Folders may be nested deeper than Python's stack allows, so pending ones are kept in a list.
    pending: list[tuple[os.DirEntry[str] | None, str, str]] = [(None, full, path)]
    while pending:
        entry, full, path = pending.pop()
        if entry is None or entry.is_dir(follow_symlinks=False):
            try:
                pending += _list_folder(full, path)
            except OSError as error:
                yield _with_finding(path, "unreadable-file", f"the folder cannot be read: {error.strerror}")
        elif entry.is_symlink() and os.path.isdir(full):
            yield _linked_folder(full, path, inside)
        elif path.endswith(suffixes):
            leads_out = entry.is_symlink() and not os.path.realpath(full).startswith(inside)
            yield _link_outside(path) if leads_out else FileEntry(path, full)


def _list_folder(full: str, path: str) -> Iterator[tuple[os.DirEntry[str], str, str]]:
    """The entries of a folder that are not hidden, last first."""
    with os.scandir(full) as found:
        entries = sorted(found, key=lambda entry: entry.name, reverse=True)
    return ((entry, entry.path, f"{path}/{entry.name}") for entry in entries if not entry.name.startswith("."))


def _linked_folder(full: str, path: str, inside: str) -> FileEntry:
    if not (os.path.realpath(full) + os.sep).startswith(inside):
        return _link_outside(path)
    return _with_finding(path, "linked-folder", "a symbolic link to a folder; it is not followed")


def _link_outside(path: str) -> FileEntry:
    message = "a symbolic link that leads out of the repository; it is not followed"
    return _with_finding(path, "link-out-of-repository", message)


def _with_finding(path: str, rule: str, message: str) -> FileEntry:
    return FileEntry(path, finding=Finding(rule, "yaml", Severity.ERROR, message, Location(path)))


def _unreadable(path: str, rule: str, message: str) -> File:
    return File(path, finding=_with_finding(path, rule, message).finding)
