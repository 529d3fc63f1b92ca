"""Decide which jobs Kueue admits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import NamedTuple

from jobgen.api.errors import NotFoundError, UsageError, check_format, check_names
from jobgen.api.project import ProjectPath, open_project, select_environments
from jobgen.features.kueue.answers import Job
from jobgen.features.kueue.job_workloads import QueuedJobs
from jobgen.features.kueue.queues.formats import FORMATS
from jobgen.features.kueue.queues.report import ALL, NONE, EnvironmentReport, collect_environment, decide_environment
from jobgen.model.finding import Finding, Severity
from jobgen.model.suggest import did_you_mean
from jobgen.pipeline.environment_checker import report_missing_folder
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.config import load as load_config
from jobgen.rendering.run import Run
from jobgen.repo.root import folder_exists


class QueuedWorkload(NamedTuple):
    """A job as Kueue sees it, and what becomes of it."""

    environment: str
    kind: str
    """The kind of the job."""
    namespace: str
    name: str
    """The name of the job."""
    queue: str
    """The LocalQueue that it names; empty if it names none."""
    cluster_queue: str
    """The ClusterQueue; empty if it is not known."""
    decision: str
    """`running`, `admitted`, `borrows`, `preempts`, `waits`, `never` or `unmanaged`."""
    reason: str
    change: str
    """The smallest change that would admit it; empty unless it is never admitted."""


class QueueResult(NamedTuple):
    """What Kueue decides about the jobs of some environments."""

    workloads: tuple[QueuedWorkload, ...]
    """The decisions, in the order of environments and files; empty if there are errors."""
    text: str
    """The decisions in the requested format."""
    findings: tuple[Finding, ...]
    """The errors that prevent rendering, or reading the state of a cluster."""
    reports: tuple[EnvironmentReport, ...] = ()
    """Private: everything that the formats show."""

    @property
    def failed(self) -> bool:
        """Whether errors prevented the decision."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


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
        jobs: Names or shell patterns of the jobs or sweeps to report; by default all jobs.
        environments: Names of environments; by default those of the project.
        running: Names or shell patterns of jobs or sweeps that run from the start; or only `all`, or only `none`.
        format: The format of `QueueResult.text`: `text`, `markdown` or `json`.

    Raises:
        UsageError: `jobgen.yaml` has errors, an argument is wrong, or no environment has a ClusterQueue.
        NotFoundError: A pattern matches no job.
        TypeError: `jobs`, `environments` or `running` is not a list of strings.

    """
    check_names("jobs", jobs)
    check_names("environments", environments)
    check_names("running", running)
    check_format(format, FORMATS.names())
    opened = open_project(project)
    selected = select_environments(opened.config, environments)
    findings: list[Finding] = []
    collected = _collect(opened.config, selected, findings)
    if any(finding.severity is Severity.ERROR for finding in findings):
        return QueueResult((), "", tuple(findings))
    if not any(queued.context.queues for queued in collected.values()):
        within = ", ".join(env for env in collected if env)
        message = f"there is no ClusterQueue{f' in {within}' if within else ''} among the files"
        raise UsageError(f"{message}; export the queues of the cluster to the folder that `cluster.state` names")
    _check_patterns((*jobs, *(each for each in running if each not in (ALL, NONE))), collected.values())
    is_running = partial(_matches, patterns=("*",) if ALL in running else running)
    decided = (decide_environment(env, each, is_running, ", ".join(running)) for env, each in collected.items())
    reports = tuple(_select(report, jobs) for report in decided)
    workloads = tuple(
        QueuedWorkload(report.environment, *each.job[:4], each.cluster_queue, each.decision, each.reason, change)
        for report in reports
        for each in report.decision.answers
        for change in (each.obstacle.change if each.obstacle else "",)
    )
    return QueueResult(workloads, FORMATS.render(format, reports), tuple(findings), reports)


def _collect(config: ProjectConfig, environments: Sequence[str], findings: list[Finding]) -> dict[str, QueuedJobs]:
    """Collect the jobs and queues of each environment."""
    run = Run(config, environments)
    rendered = list(run)
    findings += run.findings
    clusters = {env: config.environment(env, []).cluster for env in environments}
    missing = [each.state for each in clusters.values() if each.state and not folder_exists(config.root, each.state)]
    traced = load_config(config.root, traced=True) if missing else config
    findings += (report_missing_folder(traced, folder) for folder in dict.fromkeys(missing))
    return {
        env: collect_environment(
            env, [each.object for each in rendered if each.env == env], config, clusters[env], findings
        )
        for env in environments
    }


def _matches(job: Job, patterns: Sequence[str]) -> bool:
    names = (job.name, f"{job.namespace}/{job.name}", *job.aliases)
    return any(fnmatchcase(name, each) for each in patterns for name in names)


def _select(report: EnvironmentReport, jobs: Sequence[str]) -> EnvironmentReport:
    """Select jobs, and the quota that decides about them."""
    if not jobs:
        return report
    answers = tuple(answer for answer in report.decision.answers if _matches(answer.job, jobs))
    queues = {answer.cluster_queue for answer in answers}
    # The totals of their queues, and of all queues and cohorts that they share quota with.
    totals = report.decision.totals
    trees = {each.tree for each in totals if each.kind == "ClusterQueue" and each.name in queues}
    totals = tuple(each for each in totals if each.tree in trees)
    return report._replace(decision=report.decision._replace(answers=answers, totals=totals))


def _check_patterns(patterns: Sequence[str], collected: Iterable[QueuedJobs]) -> None:
    every = [job for queued in collected for job in queued.jobs]
    for pattern in patterns:
        if not any(_matches(job, (pattern,)) for job in every):
            hint = did_you_mean(pattern, sorted({name for job in every for name in (job.name, *job.aliases)}))
            raise NotFoundError(f"there is no job `{pattern}`{hint}", ())
