"""The request for a lint, the files it means, and the outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jobgen.repo import layout
from jobgen.repo.commit import CommitPath, Folder
from jobgen.report.coverage import Coverage

if TYPE_CHECKING:
    from jobgen.model.finding import Finding
    from jobgen.report.suppress import SuppressedFinding, Suppression

STDIN = "<stdin>"
REPOSITORY_FOLDERS = ("jobs", "overlays", "policies", "schemas", layout.SETTINGS)


class LintRequest(NamedTuple):
    """What to lint."""

    directory: Path
    paths: Sequence[str] = ()
    """Files and folders; without them, the whole repository."""
    envs: Sequence[str] = ()
    stdin: bytes | None = None
    """The content of `-`."""
    kubeconform: bool = False
    """Whether to run kubeconform too."""
    today: str = ""
    committed: CommitPath | None = None
    """The directory at a commit, if that is linted instead of the files on disk."""

    @property
    def folder(self) -> Folder:
        """The directory that files are read from."""
        return self.committed or self.directory


class LintFiles(NamedTuple):
    """The files of a lint."""

    root: Folder | None
    """The jobs repository, if there is one."""
    whole: bool
    """Whether the whole repository is rendered."""
    jobs: list[layout.FileEntry]
    standalone: list[layout.FileEntry] | None
    """Manifests that are checked by themselves; None if there can be none."""


class LintRun(NamedTuple):
    """The outcome of a lint."""

    findings: list[Finding]
    suppressed: list[SuppressedFinding]
    files: int
    objects: int
    environments: list[str]
    rules: frozenset[str]
    """The names of all rules and policies that were applied."""
    root: Path
    comments: list[Suppression]
    mandatory: frozenset[str]
    today: str
    coverage: Coverage
    cacheable: bool
    """Whether it stays valid until a file changes."""


def resolve_files(request: LintRequest) -> LintFiles:
    """Find the files to lint."""
    root = layout.find_root(request.folder.resolve())
    repository, standalone = _split_paths(request.folder, root, request.paths)
    whole = root is not None and bool(repository or not request.paths)
    jobs = list(layout.find_jobs(root)) if root is not None and whole else []
    if not standalone and request.stdin is None and root is not None:
        return LintFiles(root, whole, jobs, None)
    entries = _find_entries(request.folder, standalone or ([] if request.paths else ["."]), request.stdin)
    return LintFiles(root, whole, jobs, list(entries))


def select_findings(findings: Iterable[Finding], request: LintRequest) -> list[Finding]:
    """Return the findings in the given paths, and those in overlays, policies and kinds, which affect every job."""
    root = layout.find_root(request.folder.resolve())
    repository, standalone = _split_paths(request.folder, root, request.paths)
    if not repository:
        return list(findings)
    named = {path.removeprefix("./").rstrip("/") for path in (*repository, *standalone)}
    wanted = named | ({STDIN} if request.stdin is not None else set())
    return [finding for finding in findings if _is_selected(finding.location.file, wanted)]


def _is_selected(file: str, wanted: set[str]) -> bool:
    if file.startswith(("overlays", "policies/", "schemas/", layout.SETTINGS)) or file in wanted:
        return True
    return any(file[:index] in wanted for index, letter in enumerate(file) if letter == "/")


def _split_paths(directory: Folder, root: Folder | None, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return paths in the folders of the repository, relative to its root, and all others, unchanged."""
    repository: list[str] = []
    standalone: list[str] = []
    for path in paths:
        full = (directory / path).resolve()
        above = root.parts if root is not None else ()
        relative = "/".join(full.parts[len(above) :]) if root is not None and full.parts[: len(above)] == above else ""
        if path == "-":
            continue
        if root is not None and full == root:
            repository += REPOSITORY_FOLDERS
        elif relative.split("/")[0] in REPOSITORY_FOLDERS and relative:
            repository.append(relative)
        else:
            standalone.append(path)
    return repository, standalone


def _find_entries(directory: Folder, paths: Sequence[str], stdin: bytes | None) -> Iterator[layout.FileEntry]:
    for path in paths:
        yield from layout.find_manifests(directory, path)
    if stdin is not None:
        yield layout.FileEntry(STDIN, content=stdin)
