"""Apply the severities and exceptions of the settings to the findings of a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jobgen.model.finding import Finding
from jobgen.model.named_tuple import NamedTuple

if TYPE_CHECKING:
    from jobgen.rendering.run_state import AllJobs


class Accepted(NamedTuple):
    """A finding that an exception of the settings accepts."""

    finding: Finding
    reason: str


def apply_severities(
    jobs: AllJobs, findings: Iterable[Finding], *, covers_all: bool
) -> tuple[list[Finding], list[Accepted]]:
    """Return the findings with their severities in this repository, and those that exceptions accept.

    With `covers_all`, every environment was checked, so an exception without a finding is reported.
    """
    project = jobs.run.project
    severities = project.severities
    if not (project.settings.get("exceptions") or project.date):
        # No entry of the settings expires.
        return list(filter(None, map(severities.apply, findings))), []
    files = {(made.env, made.identity): made.location.file for made in jobs.list_made()}
    found: list[tuple[Finding, str]] = []
    for finding in findings:
        # A finding in an overlay is about a job of a team.
        file = files.get((finding.env, finding.object)) if finding.object else None
        found.append((finding, project.teams.find_name(file or finding.location.file)))
    applied = list(filter(None, (severities.apply(*each) for each in found)))
    accepted = [
        Accepted(finding, exception.reason)
        for finding, team in found
        if (exception := severities.find_exception(finding, team))
    ]
    if jobs.is_standalone:
        return applied, accepted
    from jobgen.pipeline.exceptions import find_expired, find_unused_exceptions

    applied += find_expired(jobs.tracer)
    return [*applied, *find_unused_exceptions(jobs.tracer, found)] if covers_all else applied, accepted
