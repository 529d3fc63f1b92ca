"""Decide which jobs Kueue admits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING

from jobgen.api.errors import NotFoundError, UsageError, check_format, check_names
from jobgen.api.project import ProjectPath, open_project, select_environments
from jobgen.compare.changes import QueueChanges
from jobgen.features.kueue.answers import Job
from jobgen.features.kueue.job_workloads import QueuedJobs
from jobgen.features.kueue.multikueue import list_clusters, lose_clusters
from jobgen.features.kueue.queues.formats import FORMATS
from jobgen.features.kueue.queues.report import (
    ALL,
    NONE,
    ChangeObjects,
    EnvironmentReport,
    collect_environment,
    decide_environment,
)
from jobgen.model.features import find_part, has_part
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import did_you_mean, find_closest, suggest_or
from jobgen.model.times import parse_moment
from jobgen.pipeline.environment_checker import report_missing_folder
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.config import load as load_config
from jobgen.rendering.environment import Rendered
from jobgen.rendering.left_out import LeftOutFile, join_environments
from jobgen.rendering.render_task import render_jobs
from jobgen.repo.root import folder_exists

_MOST_NAMES = 5
"""How many names of a history a note has."""

if TYPE_CHECKING:
    from jobgen.features.kueue.queues.timeline_report import Timeline
    from jobgen.features.kueue.queues.what_if import Outcome, WhatIf
    from jobgen.features.kueue.run_times import PastRun

_EXAMPLE = "write one such as `2026-11-18T08:00Z`"


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
    """The decisions, in the order of environments and files; empty if nothing can be decided."""
    text: str
    """The decisions in the requested format."""
    findings: tuple[Finding, ...]
    """The errors that prevent rendering a job, or reading the state of a cluster."""
    reports: tuple[EnvironmentReport, ...] = ()
    """Private: everything that the formats show."""
    left_out: tuple[LeftOutFile, ...] = ()
    """Jobs and environments that cannot be rendered; the decisions are about the others."""
    changes: tuple[QueueChanges, ...] = ()
    """What `what_if` and `suggest` change, for each environment."""
    timelines: tuple[Timeline, ...] = ()
    """Private: when jobs start and end."""

    @property
    def failed(self) -> bool:
        """Return True if something has errors, so that it is not decided about."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


def queue(
    project: ProjectPath,
    jobs: Sequence[str] = (),
    *,
    environments: Sequence[str] = (),
    running: Sequence[str] = (NONE,),
    lost: Sequence[str] = (),
    what_if: Sequence[str] = (),
    what_if_file: str | None = None,
    suggest: bool = False,
    format: str = "text",  # noqa: A002 -- the name of the option
    timeline: bool = False,
    begin: str = "",
    history: str = "",
) -> QueueResult:
    """Decide which jobs Kueue admits, which wait, and which can never be admitted.

    All jobs of an environment take part; `jobs` selects those that are reported.

    Args:
        project: A project, or a path in one.
        jobs: Names or shell patterns of the jobs or sweeps to report; by default all jobs.
        environments: Names of environments; by default those of the project.
        running: Names or shell patterns of jobs or sweeps that run from the start; or only `all`, or only `none`.
        lost: Names of worker clusters of MultiKueue that are lost.
        what_if: Changes, such as `cq/research.h100+=32`. The workloads are then those after the changes.
        what_if_file: A YAML file of partial objects, and of changes.
        suggest: If true, add the smallest changes of quota that admit all jobs, or those of `jobs`.
        format: The format of `QueueResult.text`: `text`, `markdown` or `json`; with `timeline` also `html`.
        timeline: Simulate when each job starts and ends, with the durations that are known.
        begin: When the timeline begins, such as `2026-11-18T08:00Z`; by default the day of the commit.
        history: A CSV file of the repository with runs of jobs, in the columns `name`, `start`, `end` and `gpus`.

    Raises:
        UsageError: `jobgen.yaml` has errors, an argument is wrong, a change names nothing or is ambiguous, or no
            environment has a ClusterQueue.
        NotFoundError: A pattern matches no job, or there is no such worker cluster.
        TypeError: `jobs`, `environments`, `running`, `lost` or `what_if` is not a list of strings.

    """
    _check_lists(jobs=jobs, environments=environments, running=running, lost=lost, what_if=what_if)
    check_format(format, [*FORMATS.names(), *(("html",) if timeline and has_part("queue.html") else ())])
    if timeline and suggest:
        message = "a suggestion is about jobs that arrive together, not about time"
        raise UsageError(
            f"{message}; use `--suggest` alone, and give the changes that it shows to `--timeline --what-if`"
        )
    asked, opened = None, open_project(project)
    config = opened.config
    if what_if or what_if_file is not None or suggest:
        from jobgen.features.kueue.queues.what_if import read_what_if

        asked = read_what_if(what_if, what_if_file, opened.root)
    found = _collect_queues(config, select_environments(config, environments))
    if isinstance(found, QueueResult):
        return found
    patterns = (*jobs, *(each for each in running if each not in (ALL, NONE)))
    _check_patterns(patterns, found.environments.values(), found.left_out)
    is_running = partial(_matches, patterns=("*",) if ALL in running else running)

    def collect(environments: Sequence[str], change: ChangeObjects) -> dict[str, QueuedJobs]:
        return _collect(config, environments, found.rendered, [], change)

    if timeline:
        times = _Times(begin, history, format, tuple(lost))
        return _simulate(config, found, jobs, is_running, times, asked, collect)
    _lose_clusters(lost, found.environments.values())
    named = ", ".join(running)
    decided = [decide_environment(env, each, is_running, named) for env, each in found.environments.items()]
    if asked is not None:
        from jobgen.features.kueue.queues.what_if_report import compare_environments

        wanted = partial(_matches, patterns=jobs or ("*",)) if suggest else None
        decided = compare_environments(decided, found.environments, collect, asked, is_running, wanted)
    return _report([_select(report, () if suggest else jobs) for report in decided], found, format)


def _check_lists(**lists: Sequence[str]) -> None:
    for name, names in lists.items():
        check_names(name, names)


class _Collected(NamedTuple):
    """What is decided about."""

    environments: Mapping[str, QueuedJobs]
    rendered: Sequence[Rendered]
    findings: tuple[Finding, ...]
    left_out: tuple[LeftOutFile, ...]


def _collect_queues(config: ProjectConfig, environments: Sequence[str]) -> _Collected | QueueResult:
    """Render the jobs, and collect the queues of each environment; only findings if nothing can be decided.

    Raises:
        UsageError: There is no ClusterQueue.

    """
    findings: list[Finding] = []
    result = render_jobs(config, environments)
    rendered = list(result.objects)
    collected = _collect(config, result.layers.names, rendered, findings)
    is_readable = not any(finding.severity is Severity.ERROR for finding in findings)
    findings += result.findings
    has_queues = any(queued.context.queues for queued in collected.values())
    if result.layers.has_broken_layers or not is_readable or (result.failed and not has_queues):
        return QueueResult((), "", tuple(findings))
    if not has_queues:
        within = ", ".join(env for env in collected if env)
        message = f"there is no ClusterQueue{f' in {within}' if within else ''} among the files"
        raise UsageError(f"{message}; export the queues of the cluster to the folder that `cluster.state` names")
    return _Collected(collected, rendered, tuple(findings), tuple(join_environments(result.not_rendered)))


def _report(reports: Sequence[EnvironmentReport], found: _Collected, format_: str) -> QueueResult:
    """Return the decisions as values and as text."""
    workloads = tuple(
        QueuedWorkload(report.environment, *each.job[:4], each.cluster_queue, each.decision, each.reason, change)
        for report in reports
        for each in report.decision.answers
        for change in (each.obstacle.change if each.obstacle else "",)
    )
    text = FORMATS.render(format_, reports, found.left_out)
    changes = tuple(report.comparison.changes for report in reports if report.comparison)
    return QueueResult(workloads, text, found.findings, tuple(reports), found.left_out, changes)


class _Times(NamedTuple):
    """How to show a timeline, and with which times."""

    begin: str
    history: str
    format: str
    lost: tuple[str, ...]


def _simulate(
    config: ProjectConfig,
    collected: _Collected,
    jobs: Sequence[str],
    is_running: Callable[[Job], bool],
    times: _Times,
    asked: WhatIf | None,
    collect: Callable[[Sequence[str], ChangeObjects], dict[str, QueuedJobs]],
) -> QueueResult:
    """Simulate when each job starts and ends; with changes or lost clusters, also without them."""
    # Imported late: a decision does not need it.
    from jobgen.features.kueue.queues.timeline_changes import ShownTimeline, compare_timelines, describe_lost
    from jobgen.features.kueue.queues.timeline_formats import RENDERERS
    from jobgen.features.kueue.queues.timeline_report import build_timeline, select_rows
    from jobgen.features.kueue.run_times import read_history

    begin = _find_begin(times.begin, config, collected)
    history = times.history.removeprefix(f"{config.root}/")
    if history.startswith("/") or ".." in history.split("/"):
        raise UsageError(f"`{history}` is not in the repository; name a file in it, from its top")
    faults: list[Finding] = []
    past = read_history(config.root, history, faults) if history else []
    findings, left_out = (*collected.findings, *faults), collected.left_out
    if faults:
        return QueueResult((), "", findings)
    with_queues = {env: each for env, each in collected.environments.items() if each.context.queues}
    unmatched = _describe_unmatched(past, [job for each in with_queues.values() for job in each.jobs])

    def simulate(several: Mapping[str, QueuedJobs]) -> list[Timeline]:
        made = [build_timeline(env, each, begin, past, is_running) for env, each in several.items()]
        if unmatched:
            made = [each._replace(notes=(*each.notes, unmatched)) for each in made]
        return [select_rows(each, partial(_matches, patterns=jobs)) if jobs else each for each in made]

    if asked is not None:
        # As in a decision, what is lost is lost before and after the changes.
        _lose_clusters(times.lost, with_queues.values())
    now = simulate(with_queues)
    kept = [ShownTimeline(each) for each in now]
    if asked is not None or times.lost:
        from jobgen.features.kueue.queues.what_if_report import check_targets, collect_changed

        changed = with_queues
        applied: list[list[Outcome]] = [[describe_lost(name) for name in times.lost] for _ in with_queues]
        if asked is not None:
            asked = asked._replace(adds=len(with_queues) == 1)
            found = [collect_changed(asked, env, collect) for env in with_queues]
            changed = {env: each for env, (each, _) in zip(with_queues, found, strict=True)}
            applied = [each for _, each in found]
            check_targets(applied)
        _lose_clusters(times.lost, changed.values())
        kept = list(map(compare_timelines, applied, now, simulate(changed)))
    if times.format == "html":
        text = find_part("queue.html").render_page(kept, left_out, config.root)
    else:
        text = RENDERERS[times.format](kept, left_out)
    timelines = tuple(each.timeline for each in kept)
    return QueueResult((), text, findings, left_out=left_out, timelines=timelines)


def _find_begin(text: str, config: ProjectConfig, collected: _Collected) -> int:
    """Return when a timeline begins: as it is written, or by default."""
    from jobgen.features.kueue.queues.timeline_report import find_begin

    begin = parse_moment(text)
    if text and begin is None:
        has_no_zone = parse_moment(text, needs_zone=False) is not None
        fault = f"has no time zone; write `{text}Z` for UTC" if has_no_zone else f"is not a time; {_EXAMPLE}"
        raise UsageError(f"`{text}` {fault}")
    if begin is None:
        begin = find_begin(list(collected.environments.values()), parse_moment(config.day()))
    if begin is None:
        raise UsageError("there is no commit to take the date from; pass `--from`")
    return begin


def _describe_unmatched(history: Sequence[PastRun], jobs: Sequence[Job]) -> str:
    """Name runs of a history that are of no job, with the job that may be meant; empty if all are of one."""
    from jobgen.features.kueue.run_times import index_runs

    known = {name for job in jobs for name in (job.name, *job.aliases)}
    spaced = {f"{job.namespace}/{name}" for job in jobs for name in (job.name, *job.aliases)}
    of_jobs = {run.name for name, runs in index_runs(history).items() if name in known | spaced for run in runs}
    names = sorted({run.name for run in history} - of_jobs)
    near = {name: find_closest(name.rpartition("/")[2], sorted(known)) for name in names[:_MOST_NAMES]}
    shown = [f"`{name}`{f' (did you mean `{close}`?)' if close else ''}" for name, close in near.items()]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"the history has runs of no job: {', '.join(shown)}{more}" if names else ""


def _collect(
    config: ProjectConfig,
    environments: Sequence[str],
    rendered: Sequence[Rendered],
    findings: list[Finding],
    change: ChangeObjects | None = None,
) -> dict[str, QueuedJobs]:
    """Collect the jobs and queues of each environment; `change` changes their objects."""
    clusters = {env: config.environment(env, []).cluster for env in environments}
    missing = [each.state for each in clusters.values() if each.state and not folder_exists(config.root, each.state)]
    traced = load_config(config.layers, traced=True) if missing else config
    findings += (report_missing_folder(traced, folder) for folder in dict.fromkeys(missing))
    return {
        env: collect_environment(
            env, [each.object for each in rendered if each.env == env], config, clusters[env], findings, change
        )
        for env in environments
    }


def _lose_clusters(lost: Sequence[str], collected: Iterable[QueuedJobs]) -> None:
    """Let decisions do without worker clusters."""
    contexts = [each.context for each in collected]
    known = {name for each in contexts for name in list_clusters(each)}
    for name in lost:
        if name not in known:
            raise NotFoundError(f"there is no worker cluster `{name}`{did_you_mean(name, sorted(known))}", ())
    for each in contexts if lost else ():
        lose_clusters(each, lost)


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
    names = {each.name for answer in answers for each in answer.clusters}
    clusters = tuple(each for each in report.decision.cluster_totals if each[0] in names)
    comparison = report.comparison
    if comparison is not None:
        keys = {answer.key for answer in answers}
        workloads = tuple(each for each in comparison.changes.workloads if each.workload in keys)
        changes = comparison.changes._replace(workloads=workloads)
        comparison = comparison._replace(changes=changes, unchanged=len(answers) - len(workloads))
    decision = report.decision._replace(answers=answers, totals=totals, cluster_totals=clusters)
    return report._replace(decision=decision, comparison=comparison)


def _check_patterns(patterns: Sequence[str], collected: Iterable[QueuedJobs], left_out: Sequence[LeftOutFile]) -> None:
    """Raise a NotFoundError for a pattern without a job. One that is left out, or may be, is there."""
    every = [job for queued in collected for job in queued.jobs]
    broken = [name for each in left_out for name in each.names]
    if not all(each.names for each in left_out):
        return
    for pattern in patterns:
        if not any(_matches(job, (pattern,)) for job in every) and not any(
            fnmatchcase(each, pattern) for each in broken
        ):
            known = sorted({name for job in every for name in (job.name, *job.aliases)})
            hint = suggest_or(pattern, known, "`jobgen queue` without names shows all jobs")
            raise NotFoundError(f"there is no job `{pattern}`{hint}", ())
