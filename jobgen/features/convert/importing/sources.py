"""Find the manifests to import at some paths, as a lint finds them: kustomizations are built, other files left out."""

from __future__ import annotations

import os
import posixpath
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from jobgen.api.recognized_files import read_corrections
from jobgen.features.convert.importing.collect import SkippedManifest, skip_linked_copies
from jobgen.k8s.redaction import redact
from jobgen.kustomize.tree import FolderTree
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.recognize import FRAGMENT, NOT_JUDGED, TEMPLATE, Taken
from jobgen.recognize.survey import survey_files
from jobgen.rendering.redact import find_file_secrets
from jobgen.repo import layout
from jobgen.repo.files import OTHER_EXTENSION, Build, Built, FileEntry, is_kustomization, read_file
from jobgen.repo.git import find_path_from_top
from jobgen.repo.named_paths import find_files
from jobgen.repo.root import find_root
from jobgen.reports.entries import pluralize
from jobgen.reports.escape import visible

_MAX_LISTED = 20
_UNBUILT = "unbuilt-kustomization"


class Sources(NamedTuple):
    """The manifests at some paths, and what there is not imported."""

    entries: list[FileEntry]
    """Files with finished objects, and builds of kustomizations."""
    left_out: list[SkippedManifest]
    """Templates, assets, fragments and other files without finished objects, and kustomizations without a build."""
    notes: str
    """Files that are not read, one line each, or how many there are."""

    def list_origins(self) -> list[str]:
        """Return the path of each file with objects; a build has that of its kustomization."""
        return [entry.build.file if entry.build else entry.path for entry in self.entries]

    def hide_secrets(self, text: str) -> str:
        """Return a text without the secrets of the files: what differs between two objects can show one."""
        files = [read_file(entry) for entry in self.entries if text and entry.build is None]
        return redact(text, frozenset[str]().union(*(find_file_secrets(file.content, file.path) for file in files)))


def find_sources(directory: Path, paths: Iterable[str], stdin: bytes | None = None, *, within: str = "") -> Sources:
    """Find the manifests at paths; `-` is the standard input. A file that is named is imported whatever it is.

    Kustomizations elsewhere than in the current folder can use what is `within` a folder that holds theirs.
    """
    found = Sources([], [], "")
    for path in paths:
        if path == "-":
            found.entries.append(FileEntry("-", content=stdin or b""))
        elif (directory / path).is_dir() or is_kustomization(path):
            found = _join(found, _survey(directory, path, within))
        else:
            listed = list(find_files(directory, path))
            found = _join(found, Sources([each for each in listed if not each.skipped], [], _list_unread(listed)))
    linked = skip_linked_copies(found.entries)
    return found._replace(
        entries=[entry for entry in linked if not entry.skipped], notes=found.notes + _list_unread(linked)
    )


def _join(one: Sources, other: Sources) -> Sources:
    return Sources([*one.entries, *other.entries], [*one.left_out, *other.left_out], one.notes + other.notes)


def _survey(directory: Path, path: str, within: str) -> Sources:
    """Decide what the files of a folder are; of a kustomization that is named, only its build is imported."""
    folder = path if (directory / path).is_dir() else posixpath.dirname(path) or "."
    only = "" if folder == path else posixpath.basename(path)
    # Kustomizations can use what is beside the folder, up to the current one; outside of it, the folder is the top.
    is_below = (directory / folder).resolve().is_relative_to(directory.resolve())
    above = within or folder
    top = directory if is_below else directory / above
    base = _shorten(top, directory / folder)
    prefix = "" if is_below else posixpath.join(os.path.normpath(above).replace(os.sep, "/"), "")
    listed = list(find_files(top, base))
    path_from_git = find_path_from_top(top)
    root = find_root(directory.resolve())
    survey = survey_files(
        FolderTree(top, len([name for name in path_from_git.split("/") if name])),
        [entry for entry in listed if not entry.skipped],
        [entry.path for entry in listed if entry.skipped == OTHER_EXTENSION],
        read_corrections(layout.own_layers(root)) if root is not None and is_below else (),
        os.path.relpath(top.resolve(), root).replace(os.sep, "/") if root is not None and is_below else "",
        path_from_git,
        has_tool=True,
    )
    entries: list[FileEntry] = []
    left_out = list(_leave_out(survey.taken, prefix))
    named = posixpath.normpath(posixpath.join(base, only))
    for entry in survey.entries:
        if entry.is_source or (only and (entry.build is None or entry.build.file != named)):
            continue
        failed = _explain_build(entry.build, prefix) if entry.build else None
        if failed:
            left_out.append(failed)
        else:
            entries.append(_move(entry, prefix))
    if only:
        return Sources(entries, [each for each in left_out if each.location.file == prefix + named], "")
    return Sources(entries, left_out, _list_unread(each._replace(path=prefix + each.path) for each in listed))


def _shorten(top: Path, folder: Path) -> str:
    """Return the path of a folder from one above it, however it is named."""
    return os.path.relpath(folder.resolve(), top.resolve()).replace(os.sep, "/")


def _move(entry: FileEntry, prefix: str) -> FileEntry:
    """Return an entry with its path from the current folder."""
    if not prefix:
        return entry
    build = _MovedBuild(entry.build, prefix) if entry.build else None
    finding = entry.finding and entry.finding._replace(
        location=entry.finding.location._replace(file=prefix + entry.finding.location.file)
    )
    return entry._replace(path=prefix + entry.path, build=build, finding=finding)


class _MovedBuild(Build):
    """A build whose files are named from another folder."""

    def __init__(self, own: Build, prefix: str) -> None:
        super().__init__(prefix + own.file)
        self._own = own
        self._prefix = prefix

    def make(self) -> Built:
        """Build the objects, and name their files."""
        built = self._own()
        moved = [each._replace(file=self._prefix + each.file) for each in built.objects]
        at = [each._replace(location=each.location._replace(file=self._prefix + each.location.file)) for each in moved]
        return Built(at, built.findings)


def _explain_build(build: Build, prefix: str) -> SkippedManifest | None:
    """Return why the objects of a build are not imported: it fails, or a part of it is unknown."""
    faults = [each for each in build().findings if each.severity is Severity.ERROR or each.rule == _UNBUILT]
    if not faults:
        return None
    first = faults[0]
    folder = posixpath.dirname(prefix + build.file) or "."
    advice = ""
    if all(each.rule == _UNBUILT for each in faults):
        advice = f"; run `kubectl kustomize {shlex.quote(folder)} | jobgen import - -o jobs`"
    details = (_describe(each, prefix) for each in faults[1:])
    reason = f"the kustomization is not built: {_describe(first, prefix)}{advice}"
    return SkippedManifest(Location(prefix + build.file), reason, tuple(details))


def _describe(finding: Finding, prefix: str) -> str:
    location = finding.location
    return f"{prefix}{location.file}:{location.line}: {finding.message}"


def _leave_out(taken: dict[str, Taken], prefix: str) -> Iterator[SkippedManifest]:
    """Yield the files that hold no finished objects."""
    for path, (sort, why) in taken.items():
        if sort.treatment == NOT_JUDGED:
            reason = f"it is treated as `{sort.name}`, because {why}"
            yield SkippedManifest(Location(prefix + path), reason, is_lost=sort in (TEMPLATE, FRAGMENT), sort=sort.name)


def shorten_list(left_out: Sequence[SkippedManifest]) -> tuple[list[SkippedManifest], str]:
    """Return what to list of the files that are left out, and lines that count those of which there are many."""
    counts = Counter(each.sort for each in left_out if each.sort and not each.is_lost)
    many = {sort for sort, count in counts.items() if count > _MAX_LISTED}
    lines = (f"{pluralize(counts[sort], 'file')}: nothing to import: treated as `{sort}`\n" for sort in sorted(many))
    return [each for each in left_out if each.sort not in many], "".join(lines)


def _list_unread(entries: Iterable[FileEntry]) -> str:
    """List what is not read, or count it if it is much."""
    unread = [entry for entry in entries if entry.skipped]
    if len(unread) <= _MAX_LISTED:
        return "".join(f"{visible(entry.path)}: not read: {entry.skipped}\n" for entry in unread)
    counts = Counter(entry.skipped for entry in unread)
    return "".join(f"{count} files and folders not read: {reason}\n" for reason, count in sorted(counts.items()))
