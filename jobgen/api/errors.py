"""The exceptions that the public functions raise. Mistakes in jobs, overlays and manifests are findings instead."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.model.finding import Finding


class JobgenError(Exception):
    """The base class of all exceptions that jobgen raises; its text is a message for users."""

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)
        """Findings that explain the error, if any."""


class UsageError(JobgenError):
    """An argument or `jobgen.yaml` is wrong."""


class NotFoundError(JobgenError):
    """Nothing matches the arguments: there is no such job, field or rule, or there are no files."""


class OperationError(JobgenError):
    """Files could not be read or written."""


class ToolError(JobgenError):
    """Another program, such as kubeconform, failed; or a fix cannot be applied without new errors."""
