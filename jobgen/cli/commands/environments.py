"""The environments that a command works on."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.cli.commands import ExitCode, Result, error_result
from jobgen.model.suggest import did_you_mean
from jobgen.pipeline.config import ProjectConfig, load
from jobgen.repo.layout import SETTINGS
from jobgen.report.summary import count_severities, format_findings


def environments(project: ProjectConfig, named: Sequence[str]) -> list[str] | Result:
    """The environments to work on: those named, or all; wrong settings, or one that does not exist, are wrong usage."""
    if any(finding.location.file == SETTINGS for finding in project.findings):
        wrong = [finding for finding in load(project.root, marked=True).findings if finding.location.file == SETTINGS]
        return error_result(
            ExitCode.USAGE, f"{count_severities(wrong)} in the settings; nothing was done", format_findings(wrong)
        )
    for env in named:
        if env not in project.overlays:
            known = ", ".join(sorted(project.overlays)) or "none"
            return error_result(
                ExitCode.USAGE,
                f"there is no environment `{env}`{did_you_mean(env, list(project.overlays))} (known: {known})",
            )
    return list(dict.fromkeys(named or project.environments()))
