"""One file of a repository, on disk or in a commit: found, read, or the finding that explains why it is not read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Self

from jobgen.engine.inputs import IRREGULAR, TOO_LARGE, Unread, describe, read_bytes, read_start
from jobgen.model.data import Location, ValidFields
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_BYTES, MAX_WALKED_BYTES, MAX_WALKED_ENTRIES, MAX_WALKED_FILES
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import ask_for, find_closest
from jobgen.repo.atomic import links_outside

KUSTOMIZATION_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
MANIFEST_SUFFIXES = (".yaml", ".yml", ".json")
TEMPLATE_SUFFIXES = (".yaml.template", ".yml.template", ".yaml-template", ".yml-template")
"""Names of manifests in which a program fills in variables."""
LINKED_FOLDER = "a symbolic link to a folder; it is not followed"
LINK_NOWHERE = "a symbolic link that leads nowhere"
VARIABLE_LAYER = "variable"
"""The layer of values that a program fills in: the file has a variable there."""


class BuiltObject(NamedTuple):
    """An object that a tool such as kustomize builds from several files."""

    data: ValidFields
    located: ValidFields | Callable[[], ValidFields]
    """The same object, or what finds it; its keys and leaves know where they were written."""
    file: str
    """The file of the document that it began as."""
    position: int
    location: Location

    @property
    def traced(self) -> ValidFields:
        """The object whose keys and leaves know where they were written."""
        return self.located() if callable(self.located) else self.located


class Built(NamedTuple):
    """The objects of a build in their order, and what is wrong with the files that say how to build them."""

    objects: Sequence[BuiltObject]
    findings: Sequence[Finding]


class Release(NamedTuple):
    """What a chart is installed with, as far as the repository tells."""

    chart: str
    """The folder of the chart."""
    name: str
    namespace: str
    """Where its objects are created that name no namespace; empty if that is not known."""
    values: tuple[str, ...]
    """The files of its values besides its own, the later over the earlier."""
    by: str
    """The file that installs it; empty if none is known."""
    is_installed: bool
    """False if the repository installs the chart with other values only."""
    is_declared: bool = False
    """True if an object of the repository installs it, so that a cluster has it."""

    def describe(self) -> str:
        """Return the chart and its values in words."""
        files = f" with {', '.join(self.values)}" if self.values else ""
        by = f" by {self.by}" if self.by and self.by not in self.values else ""
        return f"chart {self.chart or '.'}{files}{by}"


class Build:
    """Builds objects from several files, once; `file` says how."""

    fills: frozenset[str] = frozenset()
    """The files whose variables it fills in."""
    release: Release | None = None
    """Which chart is built with which values, if it is one."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._only: frozenset[str] | None = None
        self._built: Built | None = None

    def limit_to(self, files: frozenset[str]) -> Self:
        """Report only findings in some files, because the build itself was not asked for."""
        self._only = files
        return self

    def reports(self, file: str) -> bool:
        """Return True if findings in a file are reported."""
        return self._only is None or file in self._only

    @property
    def named_by(self) -> str:
        """The file by which findings name the build; empty if nothing is built."""
        return self.file

    def owns(self, file: str) -> bool:
        """Return True if a file is a part of what is built, so that findings in it are selected here."""
        del file
        return False

    def list_comments(self) -> Iterable[File]:
        """Return texts whose comments suppress findings of the build, besides those of files that are read anyway."""
        return ()

    def select(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings of the build that are reported."""
        return [finding for finding in findings if self.reports(finding.location.file)]

    @property
    def is_built(self) -> bool:
        """Return True if the objects have been built."""
        return self._built is not None

    def __call__(self) -> Built:
        """Build the objects; the second time, return the same."""
        if self._built is None:
            self._built = self.make()
        return self._built

    def make(self) -> Built:
        """Build the objects."""
        raise NotImplementedError

    def make_again(self) -> Sequence[BuiltObject]:
        """Return the objects of another build, in which what is random, or the time, is another one."""
        return self.make().objects

    def read_sources(self, finding: Finding) -> Iterable[File]:
        """Return the files that the values of a finding may come from."""
        raise NotImplementedError


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
    """True if the file may be something else than a manifest: it was found in a folder that holds any files."""
    is_source: bool = False
    """True if only the text of the file is checked: its objects are those of a build that another entry has."""
    build: Build | None = None
    """Builds the objects of this entry from several files; `content` has the bytes of all of them."""


class NotedFindings(Build):
    """Findings about files whose objects are others' concern: it builds nothing."""

    def __init__(self, file: str, findings: Sequence[Finding]) -> None:
        """Start with the findings."""
        super().__init__(file)
        self._findings = findings

    @property
    def named_by(self) -> str:
        """Nothing is built."""
        return ""

    def read(self) -> bytes:
        """Return what they say."""
        return repr(self._findings).encode("utf-8", "surrogatepass")

    def make(self) -> Built:
        """Return the findings, and no objects."""
        return Built((), self._findings)

    def read_sources(self, finding: Finding) -> Sequence[File]:
        """Return no file: the findings show no secret."""
        del finding
        return ()


def note_findings(name: str, findings: Sequence[Finding]) -> FileEntry:
    """Return an entry with findings and no objects."""
    note = NotedFindings(findings[0].location.file, findings)
    return FileEntry(name, content=note.read(), optional=True, build=note)


# Folders that package managers fill.
DEPENDENCY_FOLDERS = frozenset(("node_modules", "__pycache__", "site-packages", "venv", "bower_components"))
# Hidden folders with objects that something else than a person applies.
OBJECT_FOLDERS = frozenset((".tekton", ".github"))
HIDDEN = "hidden"
OTHER_EXTENSION = "other extension"
DEPENDENCIES = "dependencies"
OTHER_REPOSITORY = "other Git repository"
HELM_CHART = "Helm chart"
CHART_METADATA = "Chart.yaml"
LINKED = "link"
LOCK_FILE = "lock file"
EXCLUDED = "excluded"
_HEAD_BYTES = 4096
_MAX_HELD_BYTES = 64 * 1024 * 1024
"""How many bytes of files are held."""
# The first line of a document, in YAML or JSON, that is one of Kubernetes or of jobgen.
_OBJECT_START = lazy_pattern(
    r"(?:\xef\xbb\xbf)?(?:[ \t]*(?:#[^\n]*|---[^\n]*)?\r?\n)*"
    r"(?:[ \t]*\{\s*\"(?:apiVersion|kind)\"|(?:apiVersion|kind|metadata)[ \t]*:)",
    re.IGNORECASE,
)


def is_kustomization(path: str) -> bool:
    """Return True if a file has the name of a kustomization."""
    return path.endswith(KUSTOMIZATION_NAMES) and os.path.basename(path) in KUSTOMIZATION_NAMES


_PACKAGE = lazy_pattern(r"[^/]+-v?\d+\.\d+\.\d+[^/]*\.tgz\Z")


def is_package(path: str) -> bool:
    """Return True if a file has the name that `helm package` gives to a chart."""
    return path.endswith(".tgz") and _PACKAGE.search(path) is not None


def is_manifest_name(path: str) -> bool:
    """Return True if a file may be a manifest by its name: it is YAML or JSON, and not hidden."""
    return path.endswith(MANIFEST_SUFFIXES) and not any(part.startswith(".") for part in path.split("/"))


def starts_object(entry: FileEntry) -> bool:
    """Return True if a file begins as a manifest or a job spec does."""
    is_read = entry.content is not None or not entry.full
    start = (entry.content or b"")[:_HEAD_BYTES] if is_read else read_start(entry.full, _HEAD_BYTES)
    return _OBJECT_START.match(start.decode("latin-1")) is not None


def report_missing_path(path: str, known: Iterable[str] = ()) -> FileEntry:
    """The entry of a path that was named and does not exist; one of those that do may be meant."""
    others, path = list(known), path.rstrip("/")
    names = [os.path.basename(each) for each in others]
    # What two paths have in common may be their folders only.
    name = find_closest(os.path.basename(path), names)
    near = [each for each, own in zip(others, names, strict=True) if own == name]
    hint = ask_for(find_closest(path, near) or (near[0] if len(near) == 1 else "")) or "; check the path"
    return report_file(path, "unreadable-file", f"there is no such file or folder{hint}")


def report_unread_path(path: str, message: str) -> FileEntry:
    """The entry of a path that was named and is not read."""
    return report_file(path, "unread-file", message, "meta")


def measure_file(entry: FileEntry) -> int:
    """Return the size of a file that is to be read; 0 if that is not known."""
    try:
        return 0 if entry.skipped or entry.finding else os.stat(entry.full).st_size
    except OSError:
        return 0


def report_too_many_files(path: str) -> FileEntry:
    """The entry of a folder that holds more than jobgen reads."""
    message = (
        f"the folder holds more than {MAX_WALKED_FILES:,} manifests, {MAX_WALKED_ENTRIES:,} files or "
        f"{MAX_WALKED_BYTES // 1024**3} GiB, so nothing in it was checked; name the folders that hold manifests"
    )
    return report_file(path, "too-many-files", message, "meta")


def read_path(full: Path | str, path: str, home: Path) -> File:
    """Read a file at any path; it is not read if a link leads out of the repository."""
    return read_file(report_link_outside(path) if links_outside(full, home) else FileEntry(path, str(full)))


def read_file(entry: FileEntry) -> File:
    """Read the content of a file; the result has a finding if that is not possible."""
    path, full, finding, content, *_ = entry
    if finding or content is not None:
        return File(path, content or b"", finding)
    found = read_bytes(full)
    if not isinstance(found, Unread):
        return File(path, found)
    if found.reason == TOO_LARGE:
        return File(path, finding=report_too_large(path, found.size).finding)
    message = found.reason
    if found.reason != IRREGULAR:
        message = LINK_NOWHERE if describe(full) == "link missing" else f"cannot be read: {found.reason}"
    return File(path, finding=report_file(path, "unreadable-file", message).finding)


def hold_contents(entries: Iterable[FileEntry]) -> list[FileEntry]:
    """Return the entries with their contents, as far as these are not too large together, so that each is read once."""
    held: list[FileEntry] = []
    size = 0
    for entry in entries:
        if entry.content is None and entry.finding is None and entry.build is None and size < _MAX_HELD_BYTES:
            file = read_file(entry)
            size += len(file.content)
            entry = entry._replace(content=file.content) if file.finding is None else entry  # noqa: PLW2901
        held.append(entry)
    return held


def use_draft(entry: FileEntry, draft: bytes) -> FileEntry:
    """The entry of a file with the content of an editor."""
    if len(draft) > MAX_BYTES:
        return report_too_large(entry.path, len(draft))
    return entry._replace(content=draft)


def report_link_outside(path: str) -> FileEntry:
    """The entry of a link that is not followed."""
    message = "a symbolic link that leads out of the repository; it is not followed"
    return report_file(path, "link-out-of-repository", message)


def report_link_nowhere(path: str) -> FileEntry:
    """The entry of a link without an extension that leads nowhere: it was one to a folder."""
    finding = Finding(
        "unreadable-file", "yaml", Severity.WARNING, f"{LINK_NOWHERE}; correct or remove it", Location(path)
    )
    return FileEntry(path, finding=finding)


def report_too_large(path: str, size: int) -> FileEntry:
    """The entry of a file with too many bytes."""
    shown, limit = size // 1024 // 1024, MAX_BYTES // 1024 // 1024
    return report_file(path, "file-too-large", f"{shown} MiB is too large for a manifest; the limit is {limit} MiB")


def report_file(path: str, rule: str, message: str, category: str = "yaml") -> FileEntry:
    """The entry of a file or folder that is not read, with the finding that explains why."""
    return FileEntry(path, finding=Finding(rule, category, Severity.ERROR, message, Location(path)))
