"""Name the kind description with errors that declares the framework of a job."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.model.data import Location, location_of
from jobgen.model.finding import BROKEN_KIND, Finding, Related, Severity
from jobgen.render import config
from jobgen.render.config import ProjectConfig
from jobgen.repo import layout


def name_broken_kinds(findings: Sequence[Finding], project: ProjectConfig) -> list[Finding]:
    """Return the findings; those about a framework that a broken kind description declares refer to the description."""
    broken = {found.location.file for found in project.findings if found.severity is Severity.ERROR}
    if not broken or not any(map(_name_framework, findings)):
        return list(findings)
    declared: dict[str, Location] = {}
    for file in layout.read_kinds(project.root):
        for document in config.read_traced(file) if file.path in broken and not file.finding else ():
            names = document.data.get("frameworks") if isinstance(document.data, dict) else None
            for name in names if isinstance(names, dict) else ():
                declared.setdefault(str(name), location_of(name) or document.location)
    return [_refer_to_kind(finding, declared) for finding in findings]


def _name_framework(finding: Finding) -> str:
    """The framework of a job that no kind has; empty if the finding is about something else."""
    field, name = (*finding.values[:2], "", "")[:2]
    return name if finding.rule == "invalid-value" and field == "framework" else ""


def _refer_to_kind(finding: Finding, declared: dict[str, Location]) -> Finding:
    location = declared.get(_name_framework(finding))
    if location is None:
        return finding
    return finding._replace(related=(*finding.related, Related(location, BROKEN_KIND)))
