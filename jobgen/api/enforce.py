"""What must not be rendered, whatever the author of a job writes: limits of teams, mandatory rules and policies."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from jobgen.model.builtin_rules import LIMIT_RULES, UNCHECKED_RULES
from jobgen.model.finding import Finding, Severity, sort_findings
from jobgen.pipeline.finish import OF_REPORT, Finishing, finish
from jobgen.pipeline.lint_checks import LintTask
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.render_task import render_jobs
from jobgen.repo import layout
from jobgen.repo.policy_kinds import may_mutate
from jobgen.reports.severities import list_expiring

_BUDGET = "team-budget-exceeded"
_USES = LIMIT_RULES - {"unqueued-accelerators"}
"""Limits of what an object names or requests. A mutating policy of the platform may add a queue, but allows nothing."""


def find_refused(project: ProjectConfig, environments: Sequence[str], files: Collection[str]) -> tuple[Finding, ...]:
    """Return the errors that forbid to render the jobs of some files.

    All jobs are checked, because they share budgets. Exceptions of the settings count. Comments do not:
    a cluster does not read them either.
    """
    if not project.date and next(list_expiring(project.settings), None):
        # Argo CD sends no commit, and an exception without a date would never expire.
        project = project._replace(date=datetime.now(UTC).date().isoformat())
    result = render_jobs(project, environments, task=LintTask())
    found = list(result.findings)
    if any(may_mutate(file.content) for file in layout.read_own_policies(project.layers)):
        # What is printed is what was rendered. A mutating policy beside the jobs may not be in the cluster.
        rendered = render_jobs(project, environments, task=LintTask(mutates=False))
        found += (each for each in rendered.findings if each.rule in _USES and each not in found)
    # What could not be checked is not allowed.
    enforced = project.mandatory.union(UNCHECKED_RULES, result.layers.policies)
    teams = set(map(project.teams.find_name, files))

    def is_about_files(finding: Finding) -> bool:
        file = finding.location.file
        if finding.rule == _BUDGET:
            # It is reported at the largest job of a team, and is about all of them.
            return project.teams.find_name(file) in teams
        others = {file} if file.startswith("jobs/") else result.find_files(finding)
        return not others or not others.isdisjoint(files)

    refused = [
        finding
        for finding in found
        if finding.severity is Severity.ERROR
        and (finding.rule in enforced or finding.location.file.startswith("policies/"))
        and is_about_files(finding)
    ]
    return tuple(finish(sort_findings(refused), Finishing(project.mandatory), OF_REPORT))
