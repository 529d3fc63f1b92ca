"""Say who owns what, and what is used of each budget."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from jobgen.api.errors import UsageError, check_format, check_names
from jobgen.api.project import ProjectPath, open_project, select_environments
from jobgen.features.teams.formats import FORMATS
from jobgen.features.teams.overview import TeamOverview, list_overviews
from jobgen.model.finding import Finding, Severity
from jobgen.model.suggest import did_you_mean
from jobgen.pipeline.environment_checker import EnvironmentChecker
from jobgen.pipeline.policies import mutate_rendered
from jobgen.rendering.environment import EnvironmentRunner
from jobgen.rendering.run import Run


class TeamsResult(NamedTuple):
    """The teams of a repository."""

    teams: tuple[TeamOverview, ...]
    """The teams, and last the files that no team owns, if they have jobs; empty if there are errors."""
    text: str
    """The teams in the requested format."""
    findings: tuple[Finding, ...]
    """The errors that prevent rendering."""

    @property
    def failed(self) -> bool:
        """Whether errors prevented rendering."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


def teams(
    project: ProjectPath,
    names: Sequence[str] = (),
    *,
    environments: Sequence[str] = (),
    format: str = "text",  # noqa: A002 -- the name of the option
) -> TeamsResult:
    """Say who owns what, and what is used of each budget.

    Args:
        project: A project, or a path in one.
        names: Names of teams as shell patterns; by default all teams.
        environments: Names of environments; by default those of the project.
        format: The format of `TeamsResult.text`: `text`, `markdown` or `json`.

    Raises:
        UsageError: `jobgen.yaml` has errors, an argument is wrong, or there is no such team.
        TypeError: `names` or `environments` is not a list of strings.

    """
    check_names("names", names)
    check_names("environments", environments)
    check_format(format, FORMATS.names())
    opened = open_project(project)
    config = opened.config
    selected = select_environments(config, environments)
    chosen = [team for team in config.teams.all if not names or any(fnmatchcase(team.name, name) for name in names)]
    known = [team.name for team in config.teams.all]
    if not known and not opened.findings:
        raise UsageError("there are no teams; write `teams/<name>.yaml`, or `teams` in jobgen.yaml")
    for name in names:
        if known and not any(fnmatchcase(team, name) for team in known):
            raise UsageError(f"there is no team `{name}`{did_you_mean(name, known)} (known: {', '.join(known)})")
    run = Run(config, selected)
    made = list(run)
    if run.failed:
        return TeamsResult((), "", tuple(run.findings))
    checkers = [EnvironmentChecker(EnvironmentRunner(config, name)) for name in run.environments]
    found = [each for each in list_overviews(chosen, checkers, mutate_rendered(config, made)) if each.name or not names]
    return TeamsResult(tuple(found), FORMATS.render(format, found), tuple(run.findings))
