"""Diagnostics: the findings of `jobgen lint`, shown while the user types."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import partial

from lsprotocol import types

from jobgen.features.editor.context import GoodText, keep_findings
from jobgen.features.editor.lint_workspace import FileFindings
from jobgen.features.editor.server.app import MAX_SECONDS, SLOW_PAUSE, JobgenServer, OpenWorkspace, TimeLimitError
from jobgen.features.editor.server.positions import to_range
from jobgen.model.finding import Finding, Severity
from jobgen.reports import Report
from jobgen.reports.entries import ReportEntry, entries

log = logging.getLogger("jobgen.lsp")
SOURCE = "jobgen"
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}
DEPRECATED = frozenset(("deprecated-nproc-per-node", "mxjob-deprecated", "old-api-version"))
"""Rules about something that is deprecated or removed; editors strike it through."""


def register(server: JobgenServer) -> None:
    """Show the findings of a workspace when the background process has linted it."""
    server.listeners.append(partial(_show_all, server))


def _show_all(server: JobgenServer, opened: OpenWorkspace) -> None:
    found = opened.workspace.snapshot.findings
    for file in sorted({*opened.shown, *found, *opened.uris}):
        findings = found.get(file, FileFindings())
        if not opened.is_current(file) or file in opened.half_typed:
            # The document has been edited since the request, so only what other files cause is of interest.
            findings = findings._replace(own=opened.alone.get(file, findings.own))
        publish(server, opened, file, findings)


def lint_document(server: JobgenServer, opened: OpenWorkspace, file: str, *, is_complete: bool = False) -> FileFindings:
    """Lint a document by itself, show what is found, and return it.

    While a line is half typed, the findings that it hides are shown too, unless the document is said to be complete.
    """
    findings = _lint_alone(server, opened, file)
    if findings is None:
        return opened.workspace.snapshot.findings.get(file, FileFindings())
    kept = None if is_complete else _keep_hidden(server, opened, file, findings.own)
    if kept is None:
        opened.half_typed.discard(file)
        _remember(server, opened, file, findings.own)
    else:
        opened.half_typed.add(file)
    shown = findings if kept is None else findings._replace(own=kept)
    opened.alone[file] = shown.own
    publish(server, opened, file, shown)
    return findings


def _lint_alone(server: JobgenServer, opened: OpenWorkspace, file: str) -> FileFindings | None:
    """Lint a document by itself; None if it takes too long.

    Then it is left to the background process for some time, and what that found before stays until it answers.
    """
    if opened.slow.get(file, 0) > time.monotonic():
        return None
    try:
        return server.limit(opened.workspace.lint_file, file)
    except TimeLimitError:
        log.warning("`%s` takes longer than %d s, so it is linted in the background only", file, MAX_SECONDS)
        opened.slow[file] = time.monotonic() + SLOW_PAUSE
        opened.alone.pop(file, None)
        opened.half_typed.discard(file)
        return None


def _keep_hidden(
    server: JobgenServer, opened: OpenWorkspace, file: str, found: tuple[Finding, ...]
) -> tuple[Finding, ...] | None:
    good, document = opened.good.get(file), server.find_document(server.find_uri(opened, file))
    return keep_findings(good, document.source, found) if good and document else None


def _remember(server: JobgenServer, opened: OpenWorkspace, file: str, found: tuple[Finding, ...]) -> None:
    document = server.find_document(server.find_uri(opened, file))
    if document is None:
        opened.good.pop(file, None)
    else:
        opened.good[file] = GoodText(document.source, found)


def publish(server: JobgenServer, opened: OpenWorkspace, file: str, findings: FileFindings) -> None:
    """Show the findings of a file, unless it shows them already. A file of a repository inside has others."""
    uri = server.find_uri(opened, file)
    document = server.find_document(uri)
    version = document.version if document else None
    if opened.shown.get(file, ((), None)) == (shown := (findings.all, version)) or server.has_nearer(opened, file):
        return
    opened.shown[file] = shown
    if not findings.all and document is None:
        del opened.shown[file]
    diagnostics = to_diagnostics(server, opened, uri, findings.all)
    server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, version))


def clear(server: JobgenServer, opened: OpenWorkspace) -> None:
    """Remove the findings of a workspace that is closed."""
    for file in list(opened.shown):
        publish(server, opened, file, FileFindings())


def to_diagnostics(
    server: JobgenServer, opened: OpenWorkspace, uri: str, findings: Sequence[Finding]
) -> list[types.Diagnostic]:
    """Return findings as diagnostics: as in a report, a finding of several environments is shown once."""
    return [_to_diagnostic(server, opened, uri, entry) for entry in entries(Report(findings))]


def _to_diagnostic(server: JobgenServer, opened: OpenWorkspace, uri: str, entry: ReportEntry) -> types.Diagnostic:
    finding = entry.finding
    related = [
        types.DiagnosticRelatedInformation(
            types.Location(
                other := server.find_uri(opened, each.location.file), to_range(server, other, each.location)
            ),
            each.message,
        )
        for each in finding.related
    ]
    return types.Diagnostic(
        range=to_range(server, uri, finding.location),
        message=entry.message,
        severity=_SEVERITIES[finding.severity],
        code=finding.rule,
        source=SOURCE,
        tags=[types.DiagnosticTag.Deprecated] if finding.rule in DEPRECATED else None,
        related_information=related or None,
    )
