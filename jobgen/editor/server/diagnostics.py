"""Diagnostics: the findings of `jobgen lint`, shown while the user types."""

from __future__ import annotations

from functools import partial

from lsprotocol import types

from jobgen.editor.server.app import JobgenServer, OpenWorkspace
from jobgen.editor.server.positions import to_range
from jobgen.editor.snapshot import FileFindings
from jobgen.model.finding import Finding, Severity

SOURCE = "jobgen"
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}
_DEPRECATED = frozenset(("deprecated-kind", "old-api-version"))


def register(server: JobgenServer) -> None:
    """Show the findings of a workspace when the background process has linted it."""
    shown: dict[OpenWorkspace, set[str]] = {}
    server.listeners.append(partial(_show_all, server, shown))


def _show_all(server: JobgenServer, shown: dict[OpenWorkspace, set[str]], opened: OpenWorkspace) -> None:
    found = opened.workspace.snapshot.findings
    for file in sorted(shown.get(opened, set()) - found.keys()):
        publish(server, opened, file, FileFindings())
    for file, findings in found.items():
        publish(server, opened, file, findings)
    shown[opened] = set(found)


def lint_document(server: JobgenServer, opened: OpenWorkspace, file: str) -> None:
    """Lint an open document by itself, and show what is found."""
    publish(server, opened, file, opened.workspace.lint_file(file))


def publish(server: JobgenServer, opened: OpenWorkspace, file: str, findings: FileFindings) -> None:
    """Show the findings of a file."""
    uri = server.find_uri(opened, file)
    document = server.workspace.text_documents.get(uri)
    diagnostics = [to_diagnostic(server, opened, uri, finding) for finding in findings.all]
    version = document.version if document else None
    server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, version))


def to_diagnostic(server: JobgenServer, opened: OpenWorkspace, uri: str, finding: Finding) -> types.Diagnostic:
    """Return a finding as a diagnostic."""
    related = [
        types.DiagnosticRelatedInformation(
            types.Location(
                other := server.find_uri(opened, each.location.file), to_range(server, other, each.location)
            ),
            each.message,
        )
        for each in finding.related
    ]
    message = f"{finding.message} ({finding.env})" if finding.env else finding.message
    return types.Diagnostic(
        range=to_range(server, uri, finding.location),
        message=message,
        severity=_SEVERITIES[finding.severity],
        code=finding.rule,
        source=SOURCE,
        tags=[types.DiagnosticTag.Deprecated] if finding.rule in _DEPRECATED else None,
        related_information=related or None,
    )
