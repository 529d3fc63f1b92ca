"""`jobgen lint --baseline`: write a baseline file, or remove the findings that it lists."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from jobgen.api.errors import UsageError
from jobgen.api.lint_files import LintRequest, LintRun
from jobgen.model.finding import Finding, Severity
from jobgen.repo import layout
from jobgen.repo.atomic import replace_file
from jobgen.report import Suppressed, baseline


def write_baseline(path: Path, findings: Iterable[Finding], root: Path) -> None:
    """Write all findings to a baseline."""
    _write(path, str(path), baseline.to_text(findings), root)


def apply_baseline(
    request: LintRequest, file: str, linted: LintRun, *, prune: bool
) -> tuple[list[Finding], list[Suppressed]]:
    """Return the findings that a baseline does not list, and those that it lists.

    Stale entries are findings too; with `prune`, they are removed from the file instead.

    Raises:
        UsageError: The file is not a baseline, or cannot be read or written.

    """
    text = _read(request.directory / file, file, linted.root)
    try:
        new, old, stale = baseline.split(linted.findings, baseline.parse(text))
    except baseline.BaselineError as error:
        raise UsageError(f"`{file}`: {error}") from error
    # If not everything was checked, an entry without a finding may still be needed.
    partial = request.paths or request.envs or any(finding.severity is Severity.ERROR for finding in new)
    if partial:
        stale.clear()
    if stale and prune:
        _write(request.directory / file, file, baseline.remove_stale(text, stale), linted.root)
    else:
        new += baseline.find_stale(stale, text, file)
    return new, [Suppressed(finding, "was there before", "baseline") for finding in old]


def _read(path: Path, name: str, root: Path) -> str:
    found = layout.read_path(path, name, root)
    if found.finding:
        raise UsageError(f"`{name}`: {found.finding.message}")
    try:
        return found.content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"`{name}` is not UTF-8") from error


def _write(path: Path, name: str, text: str, root: Path) -> None:
    try:
        replace_file(path, text.encode(), root)
    except OSError as error:
        raise UsageError(f"`{name}` cannot be written: {error.strerror}") from error
