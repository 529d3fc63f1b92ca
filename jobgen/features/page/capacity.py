"""Capacity: the queues of each environment as Kueue decides, other limits, and the highest cost of jobs."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.diff.snapshot import Snapshot
from jobgen.features.kueue.decision.admission_context import AdmissionContext
from jobgen.features.kueue.decision.answers import Answer
from jobgen.features.kueue.decision.totals import Total
from jobgen.features.kueue.queue_jobs import QueuedJobs
from jobgen.features.kueue.queues.load import collect_environment, decide_environment
from jobgen.features.kueue.queues.report import EnvironmentReport
from jobgen.features.kueue.quota import NO_QUOTA, FlavorResource, Quota
from jobgen.features.page.costs import CostTotal, LongestRun, find_longest_run, sum_costs
from jobgen.features.page.flavors import JobFlavors, ObjectKey
from jobgen.features.page.fleet import Fleet
from jobgen.features.page.limits import Limit, list_limits
from jobgen.features.page.prices import NO_PRICES, Prices
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.exported_state import report_missing_folder
from jobgen.repo.root import folder_exists

_MAX_ERRORS = 10


class QuotaOwner(NamedTuple):
    """A ClusterQueue or Cohort: the cohort that it belongs to, and its own quota."""

    parent: str
    quotas: Mapping[FlavorResource, Quota]


class QueueState(NamedTuple):
    """The queues of an environment: the decision about its jobs, and the tree of queues and cohorts."""

    report: EnvironmentReport
    context: AdmissionContext
    owners: Mapping[tuple[str, str], QuotaOwner]
    """By kind and name."""

    def find_owner(self, total: Total) -> tuple[str, Quota]:
        """Return the cohort above a queue or cohort, and its own quota for the resource of a total."""
        parent, quotas = self.owners.get((total.kind, total.name), QuotaOwner("", {}))
        return parent, quotas.get(FlavorResource(total.flavor, total.resource), NO_QUOTA)


class Capacity(NamedTuple):
    """The queues of environments that have any, and the longest run of each cell."""

    queues: tuple[QueueState, ...]
    runs: tuple[LongestRun, ...]
    costs: tuple[CostTotal, ...]
    limits: tuple[Limit, ...]
    errors: tuple[tuple[str, str], ...]
    """Environments whose queues could not be read, and why."""


def build_capacity(snapshot: Snapshot, fleet: Fleet, prices: Prices = NO_PRICES) -> Capacity:
    """Decide about the jobs of each environment as `jobgen queue` does, and sum up deadlines."""
    queues: list[QueueState] = []
    errors: list[tuple[str, str]] = []
    for env in snapshot.environments:
        findings: list[Finding] = []
        queued = _collect_queues(snapshot, env, findings)
        failed = [finding for finding in findings if finding.severity is Severity.ERROR]
        errors += ((env, _describe_error(finding)) for finding in failed[:_MAX_ERRORS])
        if queued is not None and queued.context.queues and not failed:
            report = decide_environment(env, queued, lambda _: False)
            queues.append(QueueState(report, queued.context, _list_owners(queued.context)))
    flavors = JobFlavors(_index_answers(queues), {each.report.environment: each.context for each in queues})
    runs = tuple(find_longest_run(snapshot, cell, prices, flavors) for cell in fleet.cells)
    limits = tuple(limit for env in snapshot.environments for limit in list_limits(snapshot, env))
    return Capacity(tuple(queues), runs, tuple(sum_costs(fleet, runs, prices)), limits, tuple(errors))


def _collect_queues(snapshot: Snapshot, env: str, findings: list[Finding]) -> QueuedJobs | None:
    """Collect the jobs and queues of an environment; None if it has neither queues nor an exported state."""
    cluster = snapshot.project.environment(env, []).cluster
    objects = [each.object for each in snapshot.objects if each.env == env]
    if cluster.state and not folder_exists(snapshot.project.root, cluster.state):
        findings.append(report_missing_folder(snapshot.tracer.traced_project(), cluster.state))
        return None
    if not cluster.state and not any(each.get("kind") == "ClusterQueue" for each in objects):
        return None
    return collect_environment(env, objects, snapshot.project, cluster, findings)


def _describe_error(finding: Finding) -> str:
    place = finding.location
    return f"{place.file}:{place.line}: {finding.message}" if place.line else f"{place.file}: {finding.message}"


def _list_owners(context: AdmissionContext) -> dict[tuple[str, str], QuotaOwner]:
    """Return queues and cohorts as the version of Kueue reads them."""
    owners = {("ClusterQueue", each.name): QuotaOwner(each.cohort, each.quotas) for each in context.queues.values()}
    for cohort in context.cluster.list_cohorts():
        owners["Cohort", cohort.name] = QuotaOwner(cohort.parent, cohort.quotas)
    return owners


def _index_answers(queues: list[QueueState]) -> dict[ObjectKey, tuple[Answer, ...]]:
    found: dict[ObjectKey, tuple[Answer, ...]] = {}
    for state in queues:
        for answer in state.report.decision.answers:
            job = answer.job
            key = (state.report.environment, job.kind, job.namespace, job.name)
            found[key] = (*found.get(key, ()), answer)
    return found
