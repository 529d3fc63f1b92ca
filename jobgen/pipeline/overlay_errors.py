"""Faults of layers, and the environments that they leave standing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobgen.model.finding import Finding, Severity
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.environment import EnvironmentRunner
from jobgen.pipeline.trace import Tracer
from jobgen.spec.overlay import Overlay, list_ancestors


def overlay_errors(project: ProjectConfig, tracer: Tracer, environments: Sequence[str] | None) -> Iterator[Finding]:
    """What is wrong with layers; with `environments`, only with those that one of them is made of."""
    own = {overlay for name in environments or () for overlay in list_ancestors(name, project.overlays)}
    for finding in tracer.traced_project().findings if project.findings else ():
        overlay = _overlay_of(finding)
        if environments is None or not overlay or overlay in own:
            yield finding


def valid_environments(
    findings: Sequence[Finding], runners: Sequence[EnvironmentRunner], overlays: Mapping[str, Overlay]
) -> list[EnvironmentRunner]:
    """The environments that can be judged: with a layer missing, whatever is said of jobs would be beside the point."""
    wrong = {_overlay_of(finding) for finding in findings if finding.severity is Severity.ERROR}
    if "" in wrong:
        return []
    return [
        runner for runner in runners if not runner.problems and wrong.isdisjoint(list_ancestors(runner.name, overlays))
    ]


def _overlay_of(finding: Finding) -> str:
    """The overlay in which a finding stands; nothing if it is about all environments."""
    top, *folders = finding.location.file.split("/")
    return folders[0] if top == "overlays" and len(folders) > 1 else ""
