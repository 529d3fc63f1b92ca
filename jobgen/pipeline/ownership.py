"""Report jobs in folders that no team owns."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.model.finding import Finding, Problem
from jobgen.pipeline.locate import locate
from jobgen.pipeline.trace import Job
from jobgen.spec.teams import Teams


def find_unowned(job: Job, teams: Teams) -> Iterator[Finding]:
    """Report a job that no team owns, in a repository with teams. No limit of a team applies to it."""
    if teams.all and teams.find(job.file.path) is None and not teams.may_own(job.file.path):
        message = f"no team owns `{job.file.path}`, so no limit of a team applies; add its folder to a team"
        problem = Problem("job-without-team", message, category="team")
        yield locate(problem, job.file.path, job.start())
