"""What changes do to environments: the decisions before and after, with the quota that is suggested."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from jobgen.api.errors import UsageError
from jobgen.features.kueue.answers import RUNNING, Job
from jobgen.features.kueue.job_workloads import QueuedJobs
from jobgen.features.kueue.multikueue import Dispatcher, lose_clusters
from jobgen.features.kueue.queues.compare import compare_decisions, keep_running
from jobgen.features.kueue.queues.comparison import AppliedChange, Comparison
from jobgen.features.kueue.queues.report import (
    ChangeObjects,
    EnvironmentReport,
    Objects,
    decide_environment,
    find_running,
)
from jobgen.features.kueue.queues.suggest import suggest_quota
from jobgen.features.kueue.queues.what_if import Outcome, UnknownTargetError, WhatIf
from jobgen.spec.overlay import Cluster

Collect = Callable[[Sequence[str], ChangeObjects], Mapping[str, QueuedJobs]]
"""Collects the jobs and queues of environments, whose objects are changed first."""


def compare_environments(
    reports: Sequence[EnvironmentReport],
    collected: Mapping[str, QueuedJobs],
    collect: Collect,
    asked: WhatIf,
    is_running: Callable[[Job], bool],
    is_wanted: Callable[[Job], bool] | None,
) -> list[EnvironmentReport]:
    """Return the reports after changes, each with a comparison; `is_wanted` are the jobs that quota is suggested for.

    Raises:
        UsageError: A change is wrong, is ambiguous, or names nothing in any environment.

    """
    asked = asked._replace(adds=len(reports) == 1)
    found: list[EnvironmentReport] = []
    outcomes: list[list[Outcome]] = []
    for before in reports:
        env, old = before.environment, collected[before.environment]
        new, after, applied, suggestion = old, before, list[Outcome](), None
        # Also what ran until another job evicted it.
        runs = frozenset(each.key for each in before.decision.answers if each.decision == RUNNING or each.evicted_by)
        keeps = partial(_keeps_running, is_running=is_running, runs=runs)
        if asked.changes or asked.objects:
            new, after, applied = _change(asked, before, old, collect, keeps)
            outcomes.append(applied)
        if is_wanted is not None:
            suggestion = suggest_quota(new, after.decision, find_running(new, keeps), is_wanted)
            if suggestion.quotas:
                more = asked._replace(changes=(*asked.changes, *(each.change for each in suggestion.quotas)))
                new, after, applied = _change(more, before, old, collect, keeps)
        changes = compare_decisions(env, old, new, before.decision, after.decision)
        made = tuple(each for each in applied if isinstance(each, AppliedChange))
        changed = {each.workload for each in changes.workloads}
        unchanged = sum(each.key not in changed for each in after.decision.answers)
        found.append(after._replace(comparison=Comparison(made, changes, unchanged, suggestion)))
    check_targets(outcomes)
    return found


def _keeps_running(job: Job, is_running: Callable[[Job], bool], runs: frozenset[str]) -> bool:
    """Return True if a job that is said to run has quota before the changes; otherwise it arrives after them."""
    return is_running(job) and any(each.key in runs for each in job.workloads)


def check_targets(outcomes: Sequence[Sequence[Outcome]]) -> None:
    """Raise a UsageError for a change that names nothing in any environment; `outcomes` are those of each."""
    for several in zip(*outcomes, strict=True):
        errors = [each for each in several if isinstance(each, UnknownTargetError)]
        if len(errors) == len(several):
            # Where the object is known, the message is about its field.
            raise UsageError(str(max(errors, key=lambda error: error.is_field)))


def collect_changed(asked: WhatIf, env: str, collect: Collect) -> tuple[QueuedJobs, list[Outcome]]:
    """Return the jobs and queues of an environment with changes, and what each change does."""
    applied: dict[int, Outcome] = {}

    def change(objects: Objects, exported: Objects, cluster: Cluster, worker: str) -> tuple[Objects, Objects, Cluster]:
        own, others, cluster, found = asked.apply(objects, exported, cluster, worker)
        applied.update(found)
        return own, others, cluster

    changed = collect([env], change)[env]
    unknown = UnknownTargetError("a change is in a worker cluster whose state is not among the files")
    return changed, [applied.get(place, unknown) for place in range(len(asked.objects) + len(asked.changes))]


def _change(
    asked: WhatIf, before: EnvironmentReport, old: QueuedJobs, collect: Collect, is_running: Callable[[Job], bool]
) -> tuple[QueuedJobs, EnvironmentReport, list[Outcome]]:
    """Return the changed jobs and queues, the decision about them, and what each change does."""
    env = before.environment
    changed, applied = collect_changed(asked, env, collect)
    new = keep_running(old, changed, before.decision)
    if isinstance(old.context.dispatcher, Dispatcher):
        lose_clusters(new.context, old.context.dispatcher.lost)
    return new, decide_environment(env, new, is_running, before.running), applied
