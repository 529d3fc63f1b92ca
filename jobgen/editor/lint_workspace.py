"""Lint the whole workspace, again and again: only what changed since the last time is processed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

from jobgen.api.errors import JobgenError
from jobgen.api.lint import finish_findings
from jobgen.api.lint_files import LintFiles, LintRequest, resolve_files
from jobgen.api.lint_run import finish_file, run_lint
from jobgen.editor.decide_workspace import QueueDecider
from jobgen.editor.decisions import Decisions
from jobgen.editor.index import IndexBuilder, IndexChange
from jobgen.editor.snapshot import Snapshot, group_findings, key_of
from jobgen.model.finding import Finding
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.file_result import FileParts
from jobgen.pipeline.memory import Prepared, RunMemory
from jobgen.pipeline.read_jobs import collect_suppressions
from jobgen.pipeline.result_cache import digest_files, stat_file
from jobgen.recognize import OBJECT
from jobgen.repo import layout
from jobgen.repo.drafts import edited
from jobgen.repo.files import File, FileEntry, read_file
from jobgen.repo.named_paths import read_first
from jobgen.report.suppress import Suppression


class WorkspaceLinter:
    """Lints one workspace, and remembers the results of its files."""

    def __init__(self, root: Path, today: str = "") -> None:
        self._request = LintRequest(root, today=today)
        self._memory = RunMemory()
        self._index = IndexBuilder()
        self._decider = QueueDecider()
        self._results: list[tuple[FileEntry, FileParts]] = []
        """The results of the files of the repository in the last lint."""
        self._files = b""

    def lint(self, drafts: Mapping[str, bytes], check: Callable[[int, int], None]) -> Snapshot:
        """Lint the workspace with the contents of open documents, by real path.

        `check` is called again and again; what it raises ends the lint.
        """
        with edited(drafts):
            files = resolve_files(self._request)
            layers = digest_files(layout.read_inputs(files.root or self._request.directory))
            try:
                linted = run_lint(self._request, files, layers, self._memory, check)
            except JobgenError as error:
                found = getattr(error, "findings", ())
                return Snapshot(findings=group_findings(found, {}), error=str(error))
            entries = [*files.jobs, *(files.standalone or ())]
            own = {entry.path: keys for entry in entries if (keys := self._list_own(entry))}
            own |= self._list_own_of_layers()
            index = self._update_index(entries)
            keeps = self._note_results(files)
        grouped = group_findings(finish_findings(linted.findings, linted.mandatory)[0], own)
        others = frozenset(path for path, (sort, _) in linted.taken.items() if sort != OBJECT.name)
        return Snapshot(findings=grouped, index_change=index, keeps_decisions=keeps, others=others)

    @property
    def has_undecided(self) -> bool:
        """Whether there are queues, and jobs that have not been decided about."""
        return self._decider.is_due

    def decide(self, drafts: Mapping[str, bytes], check: Callable[[], None]) -> Decisions:
        """Decide about the jobs of the last lint as Kueue does. What `check` raises ends it."""
        prepared, project = self._memory.prepared, self._memory.project
        if prepared is None or project is None:
            return {}
        with edited(drafts):
            return self._decider.decide(self._results, self._memory.runners, project, check)

    def has_changed_files(self) -> bool:
        """Whether a file has been changed, added or removed since the last call, as far as its stat says."""
        files = resolve_files(self._request)
        entries = (*files.jobs, *(files.standalone or ()))
        known = blake2b(digest_files(layout.read_inputs(files.root or self._request.directory)))
        for entry in entries:
            known.update(repr((entry.path, stat_file(entry.full))).encode("utf-8", "surrogatepass"))
        before, self._files = self._files, known.digest()
        return self._files != before

    def _note_results(self, files: LintFiles) -> bool:
        """Note the results of jobs, and return whether the last decisions of Kueue still hold."""
        prepared, project = self._memory.prepared, self._memory.project
        entries = files.jobs if files.whole else ()
        self._results = list(self._memory.list_parts(entries))
        if prepared is None or project is None:
            return False
        return self._decider.note(self._results, self._memory.runners, project)

    def _update_index(self, entries: Sequence[FileEntry]) -> IndexChange:
        prepared, project = self._memory.prepared, self._memory.project
        if prepared is None or project is None:
            return IndexChange()
        known = self._memory.list_parts(entries)
        return self._index.update(known, self._memory.runners, self._memory.read_jobs)

    def _list_own(self, entry: FileEntry) -> frozenset[object]:
        """Return the keys of the findings that a file has by itself."""
        part, project = self._memory.find(entry), self._memory.project
        if entry.finding and project is not None:
            return frozenset(map(key_of, finish_own(project, [entry.finding], [], File(entry.path))))
        if part is None or project is None or not part.findings:
            return frozenset()
        return frozenset(map(key_of, finish_own(project, part.findings, part.comments, read_file(entry))))

    def _list_own_of_layers(self) -> dict[str, frozenset[object]]:
        """Return the keys of the findings that settings, overlays, kinds and policies have by themselves, by file."""
        prepared, project = self._memory.prepared, self._memory.project
        if prepared is None or project is None:
            return {}
        return {file: frozenset(map(key_of, found)) for file, found in list_layer_findings(project, prepared).items()}


def list_layer_findings(project: ProjectConfig, prepared: Prepared) -> dict[str, tuple[Finding, ...]]:
    """Return the findings of settings, overlays, kinds and policies, by file."""
    grouped: dict[str, list[Finding]] = {}
    for finding in prepared.findings:
        grouped.setdefault(finding.location.file, []).append(finding)
    found: dict[str, tuple[Finding, ...]] = {}
    for path, findings in grouped.items():
        file = read_first((project.root,), path) or File(path)
        comments: list[Suppression] = []
        collect_suppressions(file, comments, [])
        found[path] = finish_own(project, findings, comments, file)
    return found


def finish_own(
    project: ProjectConfig, findings: Sequence[Finding], comments: Sequence[Suppression], file: File
) -> tuple[Finding, ...]:
    """Return one finding for each fault that a file has by itself, without those that its comments suppress."""
    return finish_findings(finish_file(project, findings, comments, file), project.mandatory)[0]
