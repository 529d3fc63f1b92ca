"""Load a jobs repository, and select the environments to work on."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from jobgen.api.errors import UsageError, check_date
from jobgen.model.finding import Finding, sort_findings
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import suggest_or
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.redact_results import redact_shared
from jobgen.repo import layout
from jobgen.repo.root import SETTINGS, explain_absence, find_root, has_settings
from jobgen.repo.walk import find_folders
from jobgen.reports.entries import count_severities


class Project(NamedTuple):
    """A jobs repository: its settings, overlays and kinds."""

    root: Path
    """The folder with `jobgen.yaml`."""
    environments: tuple[str, ...]
    """The environments that functions work on by default; `("",)` without overlays."""
    findings: tuple[Finding, ...]
    """Mistakes in settings, overlays and kinds."""
    today: str
    """The date by which jobs expire, as given; empty for the date of the commit."""
    config: ProjectConfig
    """Private: the parsed files."""

    def job_names(self) -> list[str]:
        """Return the names of all jobs, in the order of their files."""
        return [job.document.name for job in read_jobs(layout.find_jobs(self.root), self.config.kinds, [])]


ProjectPath = Project | str | os.PathLike[str]
"""A loaded project, or a path in one."""


def load(path: str | os.PathLike[str] = ".", *, today: str = "") -> Project:
    """Load the jobs repository that a folder belongs to.

    Args:
        path: The root of the repository, or a folder below it.
        today: The date by which jobs and suppressions expire, as `YYYY-MM-DD`; by default that of the commit.

    Raises:
        UsageError: The folder does not exist or is not in a jobs repository, or `today` is not a date.

    """
    check_date(today)
    root = find_repository(Path(path))
    loaded = config.load(layout.own_layers(root), today=today)
    findings = (
        redact_shared(loaded, config.load(layout.own_layers(root), traced=True, today=today).findings)
        if loaded.findings
        else ()
    )
    return Project(root, tuple(loaded.environments()), tuple(findings), today, loaded)


def find_repository(folder: Path) -> Path:
    """Return the root of the jobs repository that a folder belongs to, or raise a UsageError."""
    if not folder.is_dir():
        raise UsageError(explain_absence(folder, folder))
    root = find_root(folder.resolve())
    if root is None:
        found = find_folders(folder, 1, has_settings)
        below = str(found[0].relative_to(folder)) if found else ""
        hint = f"`{below}` is one: use `jobgen -C {shlex.quote(below)}`" if below else "`jobgen init` writes one"
        raise UsageError(f"no jobs repository: there is no jobgen.yaml here or above, and no jobs/ here; {hint}")
    return root


def open_project(project: ProjectPath) -> Project:
    """Return the project itself, or load it."""
    return project if isinstance(project, Project) else load(project)


def select_environments(project: ProjectConfig, named: Sequence[str], *, is_lint: bool = False) -> list[str]:
    """Return the named environments, or the default ones; or raise a UsageError, also if the settings have errors.

    A lint reports errors in the settings beside all others, unless nothing of the settings can be read.
    """
    is_ready = is_lint and project.has_settings
    if not is_ready and any(finding.location.file == SETTINGS for finding in project.findings):
        traced = config.load(project.layers, traced=True).findings
        own = (finding for finding in traced if finding.location.file == SETTINGS)
        errors = sort_findings(redact_shared(project, own))
        raise UsageError(f"{count_severities(errors)} in {SETTINGS}; nothing else was done", errors)
    for env in named:
        if env not in project.overlays:
            known = ", ".join(sorted(project.overlays))
            advice = f"choose one of {known}" if known else f"write overlays/{env}/overlay.yaml"
            hint = suggest_or(env, list(project.overlays), advice)
            raise UsageError(f"there is no environment `{env}`{hint}")
    return list(dict.fromkeys(named or project.environments()))


def list_captures(project: ProjectConfig, environments: Sequence[str] = ()) -> list[str]:
    """Return of which day the captured state of each environment is."""
    states = {env: project.environment(env, []).cluster.state for env in environments or project.environments()}
    if not any(states.values()):
        return []
    # Imported late: most repositories have no state of a cluster.
    from jobgen.repo.captures import read_capture_day

    homes = {env: layout.find_state(project.layers, state) or project.root for env, state in states.items() if state}
    days = ((env, read_capture_day(home, states[env])) for env, home in homes.items())
    return [f"state of {env or 'the cluster'} captured on {day}" for env, day in days if day]
