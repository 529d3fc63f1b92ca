"""Where things are: the only module that walks folders and reads the files of a repository."""

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
_SOURCES = ("jobs", "overlays", "policies", "schemas")
_ENDINGS = (".yaml", ".yml", ".json")


class File(NamedTuple):
    """A file of the repository: its path from the root, and its bytes or why there are none."""

    path: str
    content: bytes = b""
    finding: Finding | None = None


class FileEntry(NamedTuple):
    """A file that was found and not read yet; or the finding that says why it will not be."""

    path: str
    full: str = ""
    finding: Finding | None = None
    content: bytes | None = None


def find_root(start: Path) -> Path | None:
    """The nearest folder at or above `start` with a jobgen.yaml; else `start` itself if it has jobs/ or overlays/."""
    for folder in (start, *start.parents):
        if (folder / SETTINGS).is_file():
            return folder
    return start if (start / "jobs").is_dir() or (start / "overlays").is_dir() else None


def is_source_folder(root: Path, folder: Path) -> bool:
    """Whether a folder is one that jobgen reads, or lies inside one."""
    full = os.path.realpath(folder)
    sources = (os.path.realpath(root / name) for name in _SOURCES)
    return any(os.path.commonpath([full, source]) == source for source in sources)


def find_shipped(name: str) -> Path:
    """A folder that travels with jobgen: inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).parent.parent
    inside = package / "data" / name
    return inside if inside.is_dir() else package.parent / name


def find_jobs(root: Path) -> Iterator[FileEntry]:
    """All files under jobs/, in the order of their paths."""
    return _walk(root, "jobs", _ENDINGS)


def list_starter_frameworks() -> list[str]:
    """The frameworks that `jobgen init` has an example job for."""
    return [os.path.basename(entry.path).removesuffix(".yaml") for entry in find_jobs(find_shipped("starter"))]


def find_manifests(folder: Path, path: str) -> Iterator[FileEntry]:
    """The manifests at a path that need not belong to a jobs repository: a file, or all files below a folder."""
    full = os.path.join(folder, path)
    root = find_root(Path(folder).resolve())
    if root is not None and links_outside(full, root):
        yield _astray(path)
        return
    if not os.path.isdir(full):
        yield FileEntry(path, full)
        return
    inside = os.path.realpath(full) + os.sep
    base = os.path.normpath(path).replace(os.sep, "/")
    for entry in _below(full, base, _ENDINGS, inside):
        if not entry.full.endswith((LOCK, KUSTOMIZATION)) or not _is_of_a_tree(entry.full):
            yield entry._replace(path=entry.path.removeprefix("./")) if base == "." else entry


def _is_of_a_tree(full: str) -> bool:
    """Whether a file is what jobgen writes beside the objects of a rendered tree."""
    folder, name = os.path.split(full)
    return name == LOCK or (name == KUSTOMIZATION and os.path.exists(os.path.join(folder, LOCK)))


def read_overlays(root: Path) -> Iterator[tuple[str, File]]:
    """All files of overlays/<env>/, with the name of their environment."""
    for entry in _walk(root, "overlays", _ENDINGS):
        parts = entry.path.split("/")
        yield (parts[1] if len(parts) > 2 else ""), read_file(entry)


def read_kinds(root: Path) -> Iterator[File]:
    """Kind descriptions: those that travel with jobgen, then the repository's own, which win."""
    home = find_shipped("schemas").parent
    if home != root:
        yield from read_own_kinds(home)
    yield from read_own_kinds(root)


def read_own_kinds(root: Path) -> Iterator[File]:
    """The kind descriptions of a repository; they stand in a folder for their group."""
    for entry in _walk(root, "schemas", (".yaml",)):
        if entry.finding or entry.path.count("/") > 1:
            yield read_file(entry)


def read_layers(root: Path) -> Iterator[File]:
    """Everything of a repository that is written by hand and is no job: overlays, kinds, policies, settings."""
    for top in ("overlays", "schemas", "policies"):
        for entry in _walk(root, top, (".yaml", ".yml")):
            yield read_file(entry)
    found = read_settings(root)
    if found:
        yield found


def read_inputs(root: Path) -> Iterator[File]:
    """Everything but jobs that a lint depends on: what a repository says, and what travels with jobgen."""
    for top in ("overlays", "policies", "schemas"):
        yield from map(read_file, _walk(root, top, _ENDINGS))
    found = read_settings(root)
    if found:
        yield found
    home = find_shipped("schemas").parent
    for top in ("policies", "schemas") if home != root else ():
        # Shipped files change with jobgen alone, and their times tell it.
        yield from map(_stamped, _walk(home, top, _ENDINGS))


def _stamped(entry: FileEntry) -> File:
    """A file with its size and time in the place of its content."""
    try:
        status = os.stat(entry.full)
    except OSError:
        return File(entry.path)
    return File(entry.path, f"{status.st_size} {status.st_mtime_ns}".encode())


class SchemaFile(NamedTuple):
    """The JSON Schema of a kind, and whether it travels with jobgen; those of a repository may be anything."""

    file: File
    is_shipped: bool


def read_schema(root: Path, name: str) -> SchemaFile | None:
    """The JSON Schema of a kind: the repository's own, or the one that travels with jobgen."""
    for home in (root, find_shipped("schemas").parent):
        entry = FileEntry(f"schemas/{name}", os.path.join(home, "schemas", name))
        # What stands in a job makes the name.
        if ".." not in name and not os.path.isabs(name) and os.path.isfile(entry.full):
            return SchemaFile(read_path(entry.full, entry.path, home), home == find_shipped("schemas").parent)
    return None


def read_shipped_policies(root: Path) -> Iterator[File]:
    """The policies that travel with jobgen, but for those that the repository has a file of the same name for."""
    home = find_shipped("policies").parent
    own = {entry.path for entry in _policies(root)}
    yield from (read_file(entry) for entry in _policies(home) if home != root and entry.path not in own)


def read_own_policies(root: Path) -> Iterator[File]:
    """The policies of a repository, with the params and namespaces that they read."""
    return map(read_file, _policies(root))


def find_policy_tests(root: Path) -> Iterator[FileEntry]:
    """The cases of policies, in a folder for each under policies/tests/."""
    return _walk(root, "policies/tests", _ENDINGS)


def _policies(root: Path) -> Iterator[FileEntry]:
    for entry in _walk(root, "policies", _ENDINGS):
        folders = entry.path.split("/")[1:-1]
        if entry.finding or folders in ([], ["params"], ["namespaces"]):
            yield entry


def read_types() -> bytes:
    """The types that kind descriptions share."""
    return (find_shipped("schemas") / "types.yaml").read_bytes()


def read_settings(root: Path) -> File | None:
    """The settings file, if there is one."""
    return read_path(root / SETTINGS, SETTINGS, root) if (root / SETTINGS).exists() else None


def read_path(full: Path | str, path: str, home: Path) -> File:
    """A file that need not stand in one of our folders; one that a link leads out of the repository is not read."""
    return read_file(_astray(path) if links_outside(full, home) else FileEntry(path, str(full)))


def read_file(entry: FileEntry) -> File:
    """The bytes of a file, or the finding that says why it cannot be read."""
    path, full, finding, content = entry
    if finding or content is not None:
        return File(path, content or b"", finding)
    try:
        status = os.stat(full)
        if not stat.S_ISREG(status.st_mode):
            return _unread(path, "unreadable-file", "not a regular file")
        if status.st_size > MAX_BYTES:
            size, limit = status.st_size // 1024 // 1024, MAX_BYTES // 1024 // 1024
            return _unread(path, "file-too-large", f"{size} MiB is too large for a manifest; the limit is {limit} MiB")
        with open(full, "rb", buffering=0) as stream:
            return File(path, stream.read())
    except OSError as error:
        nowhere = os.path.islink(full) and not os.path.exists(full)
        return _unread(
            path,
            "unreadable-file",
            "a symbolic link that leads nowhere" if nowhere else f"cannot be read: {error.strerror}",
        )


def read_lines(folders: Iterable[Path], path: str) -> list[str]:
    """The lines of a file that a finding stands in, or none if it cannot be read."""
    for folder in folders:
        found = read_path(os.path.join(folder, path), path, folder)
        if not found.finding:
            return found.content.decode("utf-8", "replace").split("\n")
    return []


def _walk(root: Path, top: str, endings: tuple[str, ...]) -> Iterator[FileEntry]:
    """Regular files below a folder in the order of their paths; links that leave the repository are refused."""
    inside = os.path.join(os.path.realpath(root), "")
    full = os.path.join(root, top)
    if os.path.islink(full) and not os.path.realpath(full).startswith(inside):
        yield _astray(top)
    elif os.path.isdir(full):
        yield from _below(full, top, endings, inside)


def _below(full: str, path: str, endings: tuple[str, ...], inside: str) -> Iterator[FileEntry]:
    # Folders may be nested deeper than Python's stack, so those still to come are kept in a list.
    pending: list[tuple[os.DirEntry[str] | None, str, str]] = [(None, full, path)]
    while pending:
        entry, full, path = pending.pop()
        if entry is None or entry.is_dir(follow_symlinks=False):
            try:
                pending += _children(full, path)
            except OSError as error:
                yield _refused(path, "unreadable-file", f"the folder cannot be read: {error.strerror}")
        elif entry.is_symlink() and os.path.isdir(full):
            yield _linked_folder(full, path, inside)
        elif path.endswith(endings):
            leaves = entry.is_symlink() and not os.path.realpath(full).startswith(inside)
            yield _astray(path) if leaves else FileEntry(path, full)


def _children(full: str, path: str) -> Iterator[tuple[os.DirEntry[str], str, str]]:
    """What a folder holds that is not hidden, last first."""
    with os.scandir(full) as found:
        entries = sorted(found, key=lambda entry: entry.name, reverse=True)
    return ((entry, entry.path, f"{path}/{entry.name}") for entry in entries if not entry.name.startswith("."))


def _linked_folder(full: str, path: str, inside: str) -> FileEntry:
    if not (os.path.realpath(full) + os.sep).startswith(inside):
        return _astray(path)
    return _refused(path, "linked-folder", "a symbolic link to a folder; it is not followed")


def _astray(path: str) -> FileEntry:
    message = "a symbolic link that leads out of the repository; it is not followed"
    return _refused(path, "link-out-of-repository", message)


def _refused(path: str, rule: str, message: str) -> FileEntry:
    return FileEntry(path, finding=Finding(rule, "yaml", Severity.ERROR, message, Location(path)))


def _unread(path: str, rule: str, message: str) -> File:
    return File(path, finding=_refused(path, rule, message).finding)
