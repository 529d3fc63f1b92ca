"""A workspace as the server sees it: the contents of open documents, and the findings of the file that is edited.

The file that is edited is linted at once, by itself. The background process lints everything, and finds what an edit
causes in other files. Until it answers, what it found before stays.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from jobgen.api.errors import JobgenError
from jobgen.api.lint_files import read_patterns
from jobgen.api.lint_run import finish_file
from jobgen.api.project import select_environments
from jobgen.engine.inputs import edited
from jobgen.features.editor.index import DecisionsAnswer, FileIndex
from jobgen.features.editor.lint_workspace import FileFindings, Snapshot, list_layer_findings
from jobgen.model.finding import Finding
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.lint_checks import LintTask
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.file_result import join_parts
from jobgen.rendering.load_layers import digest_layers, load_layers
from jobgen.rendering.process_files import process_files
from jobgen.rendering.read_jobs import JobFiles, LooseFiles, read_jobs
from jobgen.rendering.run_values import LoadedLayers, RunRequest
from jobgen.rendering.trace import Job
from jobgen.repo import layout
from jobgen.repo.atomic import links_outside
from jobgen.repo.files import MANIFEST_SUFFIXES, File, FileEntry, read_file, report_link_outside, use_draft
from jobgen.repo.root import find_root
from jobgen.repo.walk import find_one, is_excluded
from jobgen.spec.overlay import Cluster


class Ready(NamedTuple):
    """Settings, overlays, kinds and policies, loaded and ready to process jobs."""

    digest: str
    """The digest of all files that they were loaded from."""
    request: RunRequest
    layers: LoadedLayers

    @property
    def project(self) -> ProjectConfig:
        """The layers as data."""
        return self.request.project

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """The clusters of the environments; without an environment, one with the newest releases."""
        return tuple(each.expander.environment.cluster for each in self.layers.runners) or (Cluster(),)


class Workspace:
    """One folder of an editor."""

    def __init__(self, folder: Path, today: str = "") -> None:
        resolved = folder.resolve()
        self.folder = Path(os.path.abspath(folder))
        """As the editor names it: it may be a link."""
        found = find_root(resolved)
        self.root = found or resolved
        self.snapshot = Snapshot()
        self.index: dict[str, FileIndex] = {}
        """The index of all files, as the background process knows them."""
        self.decisions = DecisionsAnswer()
        """What Kueue decides about the jobs, as the background process knows them."""
        self.drafts: dict[str, bytes] = {}
        """The contents of open documents, by real path."""
        self._today = today
        self._ready: Ready | None = None

    @property
    def is_repository(self) -> bool:
        """Return True if it is a jobs repository, else manifests are linted by themselves. An edit can change it."""
        with self.reading():
            return find_root(self.root) is not None

    def take(self, snapshot: Snapshot) -> None:
        """Use what the background process found. If its lint failed, what was found before stays."""
        if snapshot.has_failed:
            snapshot = snapshot._replace(findings=self.snapshot.findings)
        self.snapshot = snapshot
        self.decisions = self.decisions._replace(number=snapshot.number if snapshot.keeps_decisions else -1)
        if snapshot.index_change.is_whole:
            self.index.clear()
        self.index.update(snapshot.index_change.changed)
        for path in snapshot.index_change.removed:
            self.index.pop(path, None)

    def forget(self) -> None:
        """Forget settings, overlays, kinds and policies, so that they are loaded again."""
        self._ready = None

    def open(self, path: str, text: str) -> None:
        """Use the text of an editor instead of the file on disk."""
        self.drafts[os.path.realpath(path)] = text.encode("utf-8", "surrogatepass")

    def close(self, path: str) -> None:
        """Use the file on disk again."""
        self.drafts.pop(os.path.realpath(path), None)

    def find_relative(self, path: str) -> str | None:
        """Return the path of a file from the root; None if it is not below it."""
        full = os.path.abspath(path)
        rest = _path_below(full, str(self.folder))
        # A link that leads out of the repository is a file of it; lint says that it is not followed.
        named = full if rest is None else os.path.join(os.path.realpath(self.folder), rest)
        found = _path_below(named, str(self.root)) or _path_below(os.path.realpath(path), str(self.root))
        return Path(found).as_posix() if found else None

    def name_file(self, file: str) -> str:
        """Return the full path of a file, as the editor names it."""
        full = os.path.join(self.root, file)
        rest = _path_below(full, os.path.realpath(self.folder))
        return full if rest is None else os.path.join(self.folder, rest)

    def reading(self) -> AbstractContextManager[None]:
        """Read the contents of open documents instead of their files."""
        return edited(self.drafts)

    @contextmanager
    def trying(self, contents: Mapping[str, bytes]) -> Iterator[None]:
        """Use other contents for some files, by path from the root, to see what an edit leads to."""
        drafts, ready = self.drafts, self._ready
        tried = {os.path.realpath(os.path.join(self.root, file)): content for file, content in contents.items()}
        self.drafts = drafts | tried
        try:
            yield
        finally:
            self.drafts, self._ready = drafts, ready

    def read(self, file: str) -> File:
        """Read a file, by its path from the root; an open document has the content of the editor."""
        return read_file(self.find_entry(file))

    def read_jobs(self, ready: Ready, file: str) -> list[Job]:
        """Read the jobs of a file, by its path from the root; those that cannot be read are left out."""
        with self.reading():
            return list(read_jobs([self.find_entry(file)], ready.project.kinds, []))

    def is_job(self, file: str) -> bool:
        """Return True if a file, by its path from the root, is linted by itself: a job or a manifest, not a layer."""
        return file.startswith("jobs/") if self.is_repository else True

    def load(self) -> Ready:
        """Return settings, overlays, kinds and policies as they are now. If the settings have errors, raise them."""
        with self.reading():
            digest = digest_layers(layout.own_layers(self.root))
            if self._ready is None or self._ready.digest != digest:
                project = config.load(layout.own_layers(self.root), today=self._today)._replace(
                    as_written=not self.is_repository
                )
                environments = select_environments(project, ()) if self.is_repository else [""]
                files = JobFiles(()) if self.is_repository else LooseFiles(())
                request = RunRequest(project, environments, files, LintTask())
                self._ready = Ready(digest, request, load_layers(request))
            return self._ready

    def lint_file(self, file: str) -> FileFindings:
        """Lint a file, by its path from the root, with the results of the last lint of everything."""
        full = os.path.join(self.root, file)
        if os.path.realpath(full) not in self.drafts and not os.path.lexists(full):
            return FileFindings()
        before = self.snapshot.findings.get(file, FileFindings())
        with self.reading():
            try:
                ready = self.load()
            except JobgenError as error:
                return FileFindings(tuple(each for each in error.findings if each.location.file == file))
            if file in self.snapshot.others:
                # What is wrong with it shows in the lint of everything: in the builds that use it.
                return before
            if self.is_job(file):
                found_here = self.lint_job(ready, file)
                return before._replace(own=tuple(each for each in found_here if each.location.file == file))
            found = list_layer_findings(ready.project, ready.layers.findings)
            return before._replace(own=found.get(file, ()))

    def find_entry(self, file: str) -> FileEntry:
        """Return a file, by its path from the root, with the content of its document if it is open."""
        full = os.path.join(self.root, file)
        draft = self.drafts.get(os.path.realpath(full))
        if links_outside(full, self.root):
            return report_link_outside(file)
        return FileEntry(file, full) if draft is None else use_draft(FileEntry(file, full), draft)

    def lint_job(self, ready: Ready, file: str) -> tuple[Finding, ...]:
        """Return the findings of the jobs of a file, also those that are located in overlays.

        There are none in a file that a lint of everything does not read: a hidden one, for example.
        """
        with self.reading():
            if not self.is_repository:
                entry = find_one(str(self.root), file, MANIFEST_SUFFIXES, any_files=True)
            elif is_excluded(file, read_patterns(layout.own_layers(self.root))):
                return ()
            else:
                entry = layout.find_source(self.root, file)
            if entry is None or entry.skipped:
                return ()
            [parts] = process_files(ready.request, ready.layers, ready.layers.runners, None, [entry])
            part = join_parts(parts)
            return finish_file(ready.project, part.findings, part.comments, read_file(entry))


def load_ready(workspace: Workspace) -> Ready | None:
    """Load settings, overlays, kinds and policies; None if the settings have errors."""
    try:
        return workspace.load()
    except JobgenError:
        return None


def _path_below(full: str, folder: str) -> str | None:
    """Return the path of a file from a folder; None if it is not below it."""
    start = os.path.join(folder, "")
    return full[len(start) :] if full.startswith(start) else None
