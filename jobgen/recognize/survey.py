"""Decide what each file of a folder is: which are judged by themselves, which in builds, and which not at all."""

from __future__ import annotations

import base64
import json
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from jobgen.kustomize import Plan, SourceTree, Tool, build, plan
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.recognize import INPUT, JUDGED, NOT_JUDGED, OBJECT, SETTINGS, Taken, kustomize_files, not_applied
from jobgen.recognize.filled_files import fill_files
from jobgen.recognize.not_applied import BUNDLE_SUFFIX
from jobgen.recognize.objects import may_hold_objects
from jobgen.recognize.tree import FileTree, Surroundings
from jobgen.repo.files import MANIFEST_SUFFIXES, Built, BuiltObject, File, FileEntry
from jobgen.repo.walk import ExcludePattern, is_excluded

STATED = "`files."
"""The start of the reason if the settings say what a file is."""


if TYPE_CHECKING:
    from jobgen.kustomize.builder import Build


class Correction(NamedTuple):
    """An entry of `files` in the settings: what the files are that a pattern matches."""

    setting: str
    pattern: ExcludePattern


class Survey(NamedTuple):
    """What the files of a folder are."""

    entries: list[FileEntry]
    """What is judged: files by themselves, the text of the files of builds, and the builds."""
    taken: dict[str, Taken]
    """What each file was taken for, except for those that are judged by themselves."""
    digest: bytes
    """Changes if a file becomes another sort of file."""
    tree: FileTree


def survey_files(
    source: SourceTree,
    entries: Sequence[FileEntry],
    others: Iterable[str],
    corrections: Sequence[Correction] = (),
    prefix: str = "",
    tool: Tool | None = None,
    above: str = "",
) -> Survey:
    """Decide what files are.

    `others` are the paths of files around them: scripts, for example, and kustomizations that may use them. `prefix` is
    the path of the folder from the root of the repository, where the patterns of corrections begin, and `above` that
    from the top of the Git repository.
    """
    own = frozenset(entry.path for entry in entries)
    paths = list(dict.fromkeys((*(entry.path for entry in entries), *others)))
    tree = FileTree(source, paths)
    named = list(filter(kustomize_files.is_kustomization, paths))
    planned = plan(source, named)
    recognizer = _Recognizer(tree, planned, frozenset(map(posixpath.dirname, named)), corrections, prefix)
    judged: list[FileEntry] = []
    taken: dict[str, Taken] = {}
    for entry in entries:
        found = recognizer.recognize(entry)
        if found is None or found.sort is OBJECT:
            judged.append(entry)
            continue
        taken[entry.path] = found
        if found.sort.treatment not in (JUDGED, NOT_JUDGED) and found.sort is not INPUT:
            judged.append(entry._replace(is_source=True))
    closures = kustomize_files.find_closures(planned)
    alone = (entry.path for entry in judged if not entry.is_source and entry.finding is None)
    objects = frozenset(path for path in alone if recognizer.find_correction(path) is None)
    around = Surroundings(tree, paths, planned, closures, objects, above, partial(KustomizeBuild, tool=tool))
    filled = fill_files(around, taken, own)
    judged = [entry._replace(is_source=True) if entry.path in filled.taken else entry for entry in judged]
    judged += filled.entries
    taken |= filled.taken
    for root in planned.roots:
        files = closures[root]
        if root in filled.roots:
            continue
        if recognizer.find_correction(root) is None and not own.isdisjoint(files):
            made = KustomizeBuild(source, root, files, tool)
            made = made if root in own else made.limit_to(own)
            folder = posixpath.dirname(root) or "."
            judged.append(FileEntry(folder, content=made.read(), optional=True, build=made))
    digest = blake2b(repr([(path, *found) for path, found in sorted(taken.items())]).encode("utf-8", "surrogatepass"))
    return Survey(judged, taken, digest.digest(), tree)


class _Built(NamedTuple):
    objects: Sequence[BuiltObject]
    findings: Sequence[Finding]


def _report_unbuilt(built: Build) -> Iterator[Finding]:
    """Report what could not be built: its objects were not judged."""
    if built.unbuilt:
        more = f" and {len(built.unbuilt) - 1} more parts were not built" if len(built.unbuilt) > 1 else ""
        message = f"{built.unbuilt[0]}, so it was not judged{more}"
        yield Finding("unbuilt-kustomization", "meta", Severity.WARNING, message, Location(built.root))


class KustomizeBuild:
    """The build of a kustomization."""

    def __init__(self, source: SourceTree, file: str, files: frozenset[str], tool: Tool | None) -> None:
        self.file = file
        self._source = source
        self._tool = tool
        self._files = files
        """All files that it reads."""
        self._only: frozenset[str] | None = None
        self._built: _Built | None = None

    def limit_to(self, files: frozenset[str]) -> KustomizeBuild:
        """Report only findings in some files, because the build itself was not asked for."""
        self._only = files
        return self

    def read(self) -> bytes:
        """Return a digest of all that it reads: its files, and the tool that builds it."""
        digest = blake2b(digest_size=16)
        # What a tool builds depends on the tool, too.
        digest.update(repr(self._tool).encode("utf-8", "surrogatepass"))
        for path in sorted(self._files):
            digest.update(blake2b(self._source.read(path).content, digest_size=16).digest())
        return digest.hexdigest().encode()

    def __call__(self) -> Built:
        """Build the objects; the second time, return the same."""
        if self._built is None:
            built = self._build()
            # The Operator SDK completes this base when it writes a bundle.
            objects = [each for each in built.objects if not each.file.endswith(BUNDLE_SUFFIX)]
            self._built = _Built(objects, (*built.findings, *_report_unbuilt(built)))
        return self._built

    def _build(self) -> Build:
        try:
            return build(self._source, self.file, self._tool)
        except Exception as error:  # noqa: BLE001 -- a fault in one kustomization must not stop the rest
            from jobgen.kustomize.builder import Build

            message = f"the build failed with {type(error).__name__}, so nothing of it was judged; report this as a bug"
            failed = Finding("internal-error", "meta", Severity.ERROR, message, Location(self.file))
            return Build(self.file, findings=(failed,))

    def reports(self, file: str) -> bool:
        """Return True if findings in a file are reported."""
        return self._only is None or file in self._only

    def read_sources(self, finding: Finding) -> Iterator[File]:
        """Return the files that the values of a finding may come from: where it is, and inputs of generators."""
        shown = {finding.location.file, *(related.location.file for related in finding.related)}
        inputs = {path for path in self._files if not path.endswith(MANIFEST_SUFFIXES)}
        yield from map(self._source.read, sorted((shown & self._files) | inputs))
        yield self._secrets

    @cached_property
    def _secrets(self) -> File:
        """The values of all Secrets that it builds: a replacement can copy one to any field."""
        secrets = [each.data for each in self().objects if each.data.get("kind") == "Secret"]
        values = [value for each in secrets for value in (each.get("data") or {}).values() if isinstance(value, str)]
        plain = {str(number): _decode(value) for number, value in enumerate(values)}
        data = {str(number): value for number, value in enumerate(values)}
        content = json.dumps({"apiVersion": "v1", "kind": "Secret", "data": data, "stringData": plain})
        return File("", content.encode("utf-8", "surrogatepass") if secrets else b"")


def _decode(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode("utf-8", "replace")
    except ValueError:
        return text


class _Recognizer:
    """Asks the modules for the sorts of files, in an order in which the more certain comes first."""

    def __init__(
        self, tree: FileTree, planned: Plan, folders: frozenset[str], corrections: Sequence[Correction], prefix: str
    ) -> None:
        self._tree = tree
        self._plan = planned
        self._folders = folders
        self._plugin_inputs = kustomize_files.find_plugin_inputs(planned, tree.source)
        self._corrections = corrections
        self._prefix = prefix

    def recognize(self, entry: FileEntry) -> Taken | None:
        """Return what a file is; None if nothing speaks against an object."""
        path = entry.path
        if entry.finding is not None:
            return None
        if (stated := self.find_correction(path)) is not None:
            return stated
        if (found := kustomize_files.recognize_file(path, self._plan, self._tree)) is not None:
            return found
        if (found := kustomize_files.recognize_plugin_input(path, self._plugin_inputs)) is not None:
            return found
        if (found := not_applied.recognize_by_path(path)) is not None:
            return found
        content = self._tree.read(path).content
        if (found := not_applied.recognize_list(path, content, is_found=entry.optional)) is not None:
            return found
        if entry.optional and not may_hold_objects(content):
            # What it is instead is said when it has been read.
            return None
        return next(filter(None, self._ask(path, content)), None)

    def _ask(self, path: str, content: bytes) -> Iterator[Taken | None]:
        yield kustomize_files.recognize_fragment(path, content, self._folders)
        yield not_applied.recognize_template(path, content)
        yield not_applied.recognize_by_content(content)
        yield not_applied.recognize_bundle(path, self._tree)
        yield not_applied.recognize_asset(path, content, self._tree)
        yield not_applied.recognize_config(path, content)

    def find_correction(self, path: str) -> Taken | None:
        """Return what the settings say that a file is."""
        from_root = posixpath.normpath(posixpath.join(self._prefix, path))
        for setting, pattern in self._corrections:
            if is_excluded(from_root, (pattern,)):
                return Taken(SETTINGS[setting], f"{STATED}{setting}` in the settings has `{pattern.text}`")
        return None
