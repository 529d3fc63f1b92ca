"""Decide which jobs Kueue admits."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from jobgen.api.errors import NotFoundError, UsageError, check_format, check_names
from jobgen.api.project import ProjectPath, open_project, select_environments
from jobgen.kueue.answers import NEVER, Answer, Job
from jobgen.model.finding import Finding, Severity
from jobgen.model.suggest import did_you_mean
from jobgen.pipeline.run import Run
from jobgen.queues import formats
from jobgen.queues.load import ALL, NONE, collect_environment, decide_environment
from jobgen.queues.report import EnvironmentReport


class QueueResult(NamedTuple):
    """What Kueue decides about the jobs of some environments."""

    reports: tuple[EnvironmentReport, ...]
    """The decisions, one report for each environment that has queues; empty if there are errors."""
    findings: tuple[Finding, ...]
    """The errors that prevent rendering, or reading the state of a cluster."""
    text: str
    """The reports in the requested format."""

    @property
    def failed(self) -> bool:
        """Whether errors prevented the decision."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def never(self) -> tuple[Answer, ...]:
        """The workloads that are never admitted."""
        return tuple(
            answer for report in self.reports for answer in report.decision.answers if answer.decision == NEVER
        )


def queue(
    project: ProjectPath,
    jobs: Sequence[str] = (),
    *,
    environments: Sequence[str] = (),
    running: Sequence[str] = (NONE,),
    format: str = "text",  # noqa: A002 -- the name of the option
) -> QueueResult:
    """Decide which jobs Kueue admits, which wait, and which can never be admitted.

    All jobs of an environment take part; `jobs` selects those that are reported.

    Args:
        project: A project, or a path in one.
        jobs: Names or shell patterns of the jobs to report; by default all jobs.
        environments: Names of environments; by default those of the project.
        running: Names or shell patterns of jobs that run from the start; or only `all`, or only `none`.
        format: The format of `QueueResult.text`: `text`, `markdown` or `json`.

    Raises:
        UsageError: `jobgen.yaml` has errors, an argument is wrong, or no environment has a ClusterQueue.
        NotFoundError: A pattern matches no job.
        TypeError: `jobs`, `environments` or `running` is not a list of strings.

    """
    check_names("jobs", jobs)
    check_names("environments", environments)
    check_names("running", running)
    check_format(format, formats.format_names())
    opened = open_project(project)
    selected = select_environments(opened.config, environments)
    run = Run(opened.config, selected)
    rendered, findings = list(run), list(run.findings)
    collected = {
        env: collect_environment(
            [each.object for each in rendered if each.env == env],
            opened.config,
            opened.config.environment(env, []).cluster,
            findings,
        )
        for env in selected
    }
    known = {env: queued for env, queued in collected.items() if queued.context.queues}
    result = QueueResult((), tuple(findings), "")
    if result.failed:
        return result
    if not known:
        within = ", ".join(env for env in selected if env)
        message = f"there is no ClusterQueue{f' in {within}' if within else ''} among the files"
        raise UsageError(f"{message}; export the queues of the cluster to the folder that `cluster.state` names")
    _check_patterns(
        (*jobs, *(each for each in running if each not in (ALL, NONE))), [each.jobs for each in known.values()]
    )
    reports = tuple(
        _select(decide_environment(env, queued, lambda job: _is_running(job, running), ", ".join(running)), jobs)
        for env, queued in known.items()
    )
    return result._replace(reports=reports, text=formats.render(format, reports))


def _is_running(job: Job, running: Sequence[str]) -> bool:
    return ALL in running or _matches(job, running)


def _matches(job: Job, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(job.name, each) or fnmatchcase(f"{job.namespace}/{job.name}", each) for each in patterns)


def _select(report: EnvironmentReport, jobs: Sequence[str]) -> EnvironmentReport:
    if not jobs:
        return report
    answers = tuple(answer for answer in report.decision.answers if _matches(answer.job, jobs))
    return report._replace(decision=report.decision._replace(answers=answers))


def _check_patterns(patterns: Sequence[str], jobs: Sequence[Sequence[Job]]) -> None:
    every = [job for several in jobs for job in several]
    for pattern in patterns:
        if not any(_matches(job, (pattern,)) for job in every):
            hint = did_you_mean(pattern, sorted({job.name for job in every}))
            raise NotFoundError(f"there is no job `{pattern}`{hint}", ())
