"""Capacity: the queues of each environment as Kueue decides, other limits, and the highest cost of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jobgen.check.cluster.quotas import measure_use
from jobgen.check.cluster.state import ClusterState, build_state, list_kinds_to_read, name_object
from jobgen.check.rules.fleet.gpu_budget_exceeded import collect
from jobgen.compare.snapshot import Snapshot
from jobgen.features.kueue.admission_context import AdmissionContext
from jobgen.features.kueue.answers import Answer, Total
from jobgen.features.kueue.queue_jobs import QueuedJobs
from jobgen.features.kueue.queues.report import EnvironmentReport, collect_environment, decide_environment
from jobgen.features.kueue.quota import NO_QUOTA, FlavorResource, Quota
from jobgen.features.page.costs import (
    NO_PRICES,
    CostTotal,
    JobFlavors,
    LongestRun,
    ObjectKey,
    Prices,
    find_longest_run,
    sum_costs,
)
from jobgen.features.page.fleet import Fleet
from jobgen.k8s.nodes import as_mapping
from jobgen.k8s.object_paths import is_app_wrapper, list_wrapped_objects
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import format_amount, sum_gpus
from jobgen.model.data import Node
from jobgen.model.finding import Finding, Severity
from jobgen.model.quantity import to_milli
from jobgen.pipeline.exported_state import read_exported, report_missing_folder
from jobgen.repo.root import folder_exists
from jobgen.spec.overlay import Cluster

_QUOTA, _BUDGET = "ResourceQuota", "budget"
_GPUS = "GPUs"


class Limit(NamedTuple):
    """A limit, and what the jobs of an environment take from it together."""

    environment: str
    kind: str
    owner: str
    """The namespace or the team, such as `namespace ml`."""
    name: str
    """The name of the ResourceQuota; empty for a budget."""
    resource: str
    used: str
    limit: str
    share: int
    """What is used of the limit, in thousandths of it, rounded up."""


def list_limits(snapshot: Snapshot, env: str) -> Iterator[Limit]:
    """Yield the ResourceQuotas and budgets of an environment."""
    cluster = snapshot.project.environment(env, []).cluster
    state = _read_quotas(snapshot, env, cluster)
    if state is None and not cluster.budgets:
        return
    manifests = list(_list_manifests(snapshot, env))
    yield from _list_quotas(env, manifests, state) if state else ()
    yield from _list_budgets(env, manifests, cluster.budgets)


def _list_manifests(snapshot: Snapshot, env: str) -> Iterator[Manifest]:
    for each in snapshot.objects:
        if each.env == env:
            yield snapshot.manifest(each)
            wrapped = list_wrapped_objects(each.object) if is_app_wrapper(each.object) else ()
            yield from (snapshot.checker(env).manifest(obj) for _, obj in wrapped)


def _read_quotas(snapshot: Snapshot, env: str, cluster: Cluster) -> ClusterState | None:
    """Read the state of the cluster, as `exceeds-quota` does; None if it has no ResourceQuota."""
    root = snapshot.project.root
    exported: list[Mapping[str, Node]] = []
    if cluster.state and folder_exists(root, cluster.state):
        exported += read_exported(root, cluster.state, [])
    kinds = list_kinds_to_read((), with_references=bool(cluster.complete))
    own = [each.object for each in snapshot.objects if each.env == env and name_object(each.object)[0] in kinds]
    has_quotas = any(name_object(obj)[0] == _QUOTA for obj in (*exported, *own))
    return build_state(cluster, exported, own, ()) if has_quotas else None


def _list_quotas(env: str, manifests: Sequence[Manifest], state: ClusterState) -> Iterator[Limit]:
    """Yield each resource of each ResourceQuota; `exceeds-quota` compares the same sums."""
    used: dict[tuple[str, int, str], int] = {}
    for use in (use for manifest in manifests for use in measure_use(manifest, state)):
        key = (use.namespace, use.quota, use.resource)
        used[key] = used.get(key, 0) + use.milli
    for namespace, quotas in sorted(state.quotas.items()):
        for index, quota in enumerate(quotas):
            for resource, amount in as_mapping(as_mapping(quota.get("spec")).get("hard")).items():
                if (hard := to_milli(amount)) is not None:
                    found = used.get((namespace, index, str(resource)), 0)
                    owner, name = f"namespace {namespace}" if namespace else "any namespace", name_object(quota)[2]
                    shown = (format_amount(resource, found), format_amount(resource, hard))
                    yield Limit(env, _QUOTA, owner, name, str(resource), *shown, _measure_share(found, hard))


def _list_budgets(env: str, manifests: Sequence[Manifest], budgets: Mapping[str, Mapping[str, Any]]) -> Iterator[Limit]:
    """Yield the budgets of namespaces and teams; `gpu-budget-exceeded` compares the same sums."""
    taken: dict[tuple[str, str], list[Any]] = {}
    for fact in (fact for manifest in manifests for fact in collect(manifest)) if budgets else ():
        taken.setdefault(fact.value[0], []).append(fact.value)
    for group in ("namespaces", "teams"):
        for name, budget in sorted(budgets.get(group, {}).items()):
            limit = budget.get("gpus")
            if limit is not None:
                gpus = sum_gpus((value[1], value[4]) for value in taken.get((group, name), ()))
                owner = f"{group.removesuffix('s')} {name}"
                yield Limit(env, _BUDGET, owner, "", _GPUS, str(gpus), str(limit), _measure_share(gpus, limit))


def _measure_share(used: int, limit: int) -> int:
    if limit <= 0:
        return 0 if used <= 0 else 1001
    return -(-used * 1000 // limit)


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
