"""Report jobs in folders that no team owns."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.model.finding import Finding, Problem
from jobgen.model.suggest import find_closest
from jobgen.render.locate import locate
from jobgen.render.trace import Job
from jobgen.spec.teams import Teams

_CUTOFF = 0.9


def find_unowned(job: Job, teams: Teams) -> Iterator[Finding]:
    """Report a job that no team owns, in a repository with teams. No limit of a team applies to it."""
    path = job.file.path
    # If a team could not be read, this may follow from it.
    if teams.all and teams.is_complete and teams.find(path) is None:
        message = f"no team owns `{path}`, so no limit of a team applies; add its folder to a team{_hint(path, teams)}"
        problem = Problem("job-without-team", message, category="team", evidence=(path,))
        yield locate(problem, path, job.start())


def _hint(path: str, teams: Teams) -> str:
    """A folder of a team that is almost that of a file: one of them may be misspelled."""
    owners = {folder: team.name for team in teams.all for folder in team.folders}
    close = find_closest(path.rpartition("/")[0], list(owners), _CUTOFF)
    return f"; `{owners[close]}` owns `{close}`" if close else ""
