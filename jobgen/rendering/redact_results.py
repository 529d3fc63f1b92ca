"""Remove the secrets of jobs, overlays, teams and policies from the findings of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jobgen.model.finding import Finding
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.file_result import FileResult
from jobgen.repo import layout
from jobgen.repo.files import File, FileEntry, read_file
from jobgen.repo.named_paths import read_first

_MAX_KEPT = 500
"""The length of a line up to which it is kept; a longer one is read again."""


def redact_results(
    project: ProjectConfig, batch: Sequence[FileEntry], results: Sequence[tuple[FileResult, ...]]
) -> None:
    """Remove secrets from findings, before they are cached or sent to another process; add the lines they point at."""
    faulty = [
        (entry, part)
        for entry, parts in zip(batch, results, strict=True)
        for part in parts
        if part.findings or part.excesses
    ]
    if not faulty:
        return
    # Imported late: most runs have no finding.
    from jobgen.rendering.redact import redact_findings

    layers = _read_layers(project)
    if any(found.location.file.startswith(f"{layout.POLICIES}/") for _, part in faulty for found in part.findings):
        # A value may be that of a mutating policy.
        layers += layout.read_own_policies(project.layers)
    for entry, part in faulty:
        if entry.build is None:
            file = read_file(entry)
            part.findings[:] = redact_findings(part.findings, (file, *layers))
            noted = (each.finding for each in part.excesses)
            part.lines.update(_select_lines(file, (*part.findings, *noted)))
        else:
            sources = entry.build.read_sources
            part.findings[:] = [one for each in part.findings for one in redact_findings([each], sources(each))]


def _select_lines(file: File, findings: Iterable[Finding]) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that findings point at, without secrets; not those that are too long to keep."""
    from jobgen.rendering.redact import redact_file

    numbers = {finding.location.line for finding in findings if finding.location.file == file.path}
    lines = redact_file(file) if numbers and file.finding is None else ()
    for number in sorted(numbers):
        if 0 < number <= len(lines) and len(line := lines[number - 1]) <= _MAX_KEPT:
            yield number, line


def redact_shared(project: ProjectConfig, findings: Iterable[Finding], others: Iterable[File] = ()) -> list[Finding]:
    """Findings about layers, or several jobs, without the secrets of their files, and of others that have been read."""
    found = list(findings)
    if not found:
        return found
    from jobgen.rendering.redact import redact_findings

    known = list(others)
    files = {finding.location.file for finding in found} - {file.path for file in known}
    read = [read_first((project.root,), file) for file in sorted(files) if file]
    return redact_findings(found, (*filter(None, read), *known, *_read_layers(project)))


def find_layer_secrets(project: ProjectConfig) -> frozenset[str]:
    """The secrets of overlays and teams."""
    from jobgen.rendering.redact import find_file_secrets

    return frozenset[str]().union(*(find_file_secrets(file.content, file.path) for file in _read_layers(project)))


def _read_layers(project: ProjectConfig) -> list[File]:
    """The files whose values may be in findings about jobs."""
    overlays = [file for _, file in layout.read_overlays(project.layers)] if project.overlays else []
    teams = list(layout.read_teams(project.layers)) if project.teams.all else []
    return overlays + teams
