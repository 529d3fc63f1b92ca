"""Diagnostics: the findings of `jobgen lint`, shown while the user types."""

from __future__ import annotations

import time
from collections.abc import Sequence

from lsprotocol import types

from jobgen.features.editor.context import GoodText, keep_findings
from jobgen.features.editor.lint_workspace import FileFindings
from jobgen.features.editor.server.app import MAX_SECONDS, SLOW_PAUSE, JobgenServer, OpenWorkspace, TimeLimitError, log
from jobgen.features.editor.server.positions import to_location, to_range
from jobgen.model.finding import Finding, Severity
from jobgen.reports import Report
from jobgen.reports.entries import entries

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

    def show_all(opened: OpenWorkspace) -> None:
        found = opened.workspace.snapshot.findings
        for file in sorted({*opened.shown, *found, *opened.uris}):
            findings = found.get(file, FileFindings())
            if not opened.is_current(file) or file in opened.half_typed:
                # The document has been edited since the request, so only what other files cause is of interest.
                findings = findings._replace(own=opened.alone.get(file, findings.own))
            publish(server, opened, file, findings)

    server.listeners.append(show_all)


def lint_document(server: JobgenServer, opened: OpenWorkspace, file: str, *, is_complete: bool = False) -> FileFindings:
    """Lint a document by itself, show what is found, and return it.

    While a line is half typed, the findings that it hides are shown too, unless the document is said to be complete.
    """
    known = opened.workspace.snapshot.findings.get(file, FileFindings())
    if opened.slow.get(file, 0) > time.monotonic():
        return known
    try:
        findings = server.limit(opened.workspace.lint_file, file)
    except TimeLimitError:
        # It is left to the background process for some time, and what that found before stays until it answers.
        log.warning("`%s` takes longer than %d s, so it is linted in the background only", file, MAX_SECONDS)
        opened.slow[file] = time.monotonic() + SLOW_PAUSE
        opened.alone.pop(file, None)
        opened.half_typed.discard(file)
        return known
    good, document = opened.good.get(file), server.find_document(server.find_uri(opened, file))
    kept = keep_findings(good, document.source, findings.own) if good and document and not is_complete else None
    if kept is not None:
        opened.half_typed.add(file)
    else:
        kept = findings.own
        opened.half_typed.discard(file)
        if document is None:
            opened.good.pop(file, None)
        else:
            opened.good[file] = GoodText(document.source, findings.own)
    opened.alone[file] = kept
    publish(server, opened, file, findings._replace(own=kept))
    return findings


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
    return [
        types.Diagnostic(
            range=to_range(server, uri, entry.finding.location),
            message=entry.message,
            severity=_SEVERITIES[entry.finding.severity],
            code=entry.finding.rule,
            source=SOURCE,
            tags=[types.DiagnosticTag.Deprecated] if entry.finding.rule in DEPRECATED else None,
            related_information=[
                types.DiagnosticRelatedInformation(to_location(server, opened, each.location), each.message)
                for each in entry.finding.related
            ]
            or None,
        )
        for entry in entries(Report(findings))
    ]
