"""Capacity: the queues of each environment as Kueue decides, other limits, and the highest cost of jobs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Any

from jobgen.check.cluster.exported import read_exported
from jobgen.check.cluster.quotas import measure_use
from jobgen.check.cluster.state import ClusterState, build_state, list_kinds_to_read, name_object
from jobgen.check.rules.fleet.budgets import collect_gpus
from jobgen.compare.snapshot import Snapshot
from jobgen.features.kueue.admission_context import AdmissionContext
from jobgen.features.kueue.answers import Answer, Total
from jobgen.features.kueue.job_workloads import QueuedJobs
from jobgen.features.kueue.queues.report import EnvironmentReport, collect_environment, decide_environment
from jobgen.features.kueue.quota import NO_QUOTA, FlavorResource, Quota
from jobgen.features.page.fleet import ACTIVE, Fleet, FleetCell
from jobgen.features.page.timeline import Forecast, forecast
from jobgen.k8s.kueue import DOMAIN, get_kueue_queue
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.object_paths import is_app_wrapper, list_wrapped_objects
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import RequestedAmount, format_amount, list_amounts, sum_gpus
from jobgen.k8s.workloads import find_workload
from jobgen.model.data import Location, untraced, value_of
from jobgen.model.finding import Finding, Problem, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.placed import with_nodes
from jobgen.model.quantity import to_milli
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import ask_for, find_closest
from jobgen.pipeline.environment_checker import report_missing_folder
from jobgen.rendering.file_secrets import read_masked
from jobgen.rendering.locate import locate
from jobgen.repo.files import File
from jobgen.repo.root import folder_exists
from jobgen.repo.shipped import find_shipped
from jobgen.schema.own_formats import compile_schema
from jobgen.spec.overlay import Cluster

# The longest time and the highest cost of one run of each job.

_MAX_TIME_LABEL = DOMAIN + "max-exec-time-seconds"
_SECONDS = "activeDeadlineSeconds"
_DEADLINES = (("runPolicy", _SECONDS), (_SECONDS,), ("jobTemplate", "spec", _SECONDS), ("jobTemplate", _SECONDS))
_RETRIES = (("backoffLimit",), ("jobTemplate", "backoffLimit"))
_MAX_DIGITS = 18


def find_deadline(manifest: Manifest) -> int:
    """Return after how many seconds a job is stopped at the latest; 0 if nothing stops it.

    The time of most kinds includes restarts. For a RayJob and a JobSet it starts again with each restart.
    """
    found = [as_integer(get_path(manifest.spec, *path)) for path in _DEADLINES]
    retries = [as_integer(get_path(manifest.spec, *path)) or 0 for path in _RETRIES if manifest.group == "ray.io"]
    seconds = [value * (1 + max((0, *retries))) for value in found if value is not None and value > 0]
    # A JobSet runs as long as the longest of its jobs, if all of them have a deadline.
    jobs = as_list(manifest.spec.get("replicatedJobs")) if manifest.kind_name == "JobSet" else ()
    of_jobs = [as_integer(get_path(job, "template", "spec", _SECONDS)) or 0 for job in jobs]
    if of_jobs and min(of_jobs) > 0:
        restarts = as_integer(get_path(manifest.spec, "failurePolicy", "maxRestarts")) or 0
        seconds.append(max(of_jobs) * (1 + max(restarts, 0)))
    label = as_text(manifest.labels.get(_MAX_TIME_LABEL))
    is_number = label.isascii() and label.isdigit() and len(label) <= _MAX_DIGITS
    if get_kueue_queue(manifest) is not None and is_number and int(label):
        seconds.append(int(label))
    return min(seconds, default=0)


ObjectKey = tuple[str, str, str, str]
"""The environment, kind, namespace and name of an object."""

NO_FLAVOR: tuple[str, Mapping[str, str]] = ("", {})


class JobFlavors(NamedTuple):
    """The decisions about all jobs, and the queues of each environment."""

    answers: Mapping[ObjectKey, tuple[Answer, ...]]
    contexts: Mapping[str, AdmissionContext]

    def find(self, job: ObjectKey, role: str, resource: str) -> list[tuple[str, Mapping[str, str]]]:
        """Return the flavors that pods can get for a resource, with their node labels.

        Admitted pods have one. Pods that wait can get any flavor of their queue. Without a queue there is none.
        """
        answers, context = self.answers.get(job, ()), self.contexts.get(job[0])
        admitted = [each for answer in answers if answer.workload for each in answer.workload.admission]
        # All pod sets count if none has the name of the role.
        own = [each for each in admitted if each.name == role] or admitted
        names = [each.flavors[resource] for each in own if resource in each.flavors]
        if not names and context is not None:
            queues = [context.queues[each.cluster_queue] for each in answers if each.cluster_queue in context.queues]
            groups = [group for queue in queues if (group := queue.find_group(resource))]
            names = [flavor for group in groups for flavor in group.flavors]
        if context is None or not names:
            return [NO_FLAVOR]
        known = context.flavors
        return [(name, known[name].labels if name in known else {}) for name in dict.fromkeys(names)]


_FORMAT = "prices_v1.json"
_DIGITS = 6
"""How many digits a price may have after the point; prices are kept as integers."""


class PriceTarget(NamedTuple):
    """What a price can depend on: the fields of `match`."""

    environment: str
    namespace: str
    queue: str
    flavor: str
    labels: Mapping[str, str]
    """The labels of the nodes that the pods run on, as far as they are known."""


class Price(NamedTuple):
    """An entry of the file."""

    resource: str
    hourly: int
    """In millionths of the currency."""
    fields: Mapping[str, str]
    """What the fields of PriceTarget must be."""
    labels: Mapping[str, str]


class Prices(NamedTuple):
    """All prices, in the order of the file."""

    currency: str
    entries: tuple[Price, ...]

    def find(self, resource: str, target: PriceTarget) -> int | None:
        """Return the price of the first entry that matches, in millionths; None if there is none."""
        found = (
            entry.hourly
            for entry in self.entries
            if entry.resource == resource
            and entry.labels.items() <= target.labels.items()
            and all(getattr(target, field) == value for field, value in entry.fields.items())
        )
        return next(found, None)


NO_PRICES = Prices("", ())


def read_prices(file: File, environments: Sequence[str], findings: list[Finding]) -> Prices:
    """Read a price file; what is wrong with it goes to `findings`."""
    if file.finding:
        findings.append(file.finding)
        return NO_PRICES
    source = read_masked(file.content, file.path, traced=True)
    findings += source.findings
    if source.findings:
        return NO_PRICES
    if len(source.documents) != 1:
        message = "a price file is one document with a list `prices`; write `prices: [{resource: cpu, hourly: 0.05}]`"
        place = source.documents[1].location if source.documents else Location(file.path, 1)
        findings.append(locate(Problem("missing-field", message, None), file.path, place))
        return NO_PRICES
    data = source.documents[0].data
    problems: list[Problem] = []
    schema = json.loads((find_shipped("schemas") / "jobgen.dev" / _FORMAT).read_text("utf-8"))
    compile_schema(_FORMAT, {_FORMAT: schema})(data, "prices", None, problems)
    problems = list(map(with_nodes, problems))
    problems += () if problems else _find_wrong_entries(data["prices"], environments)
    findings += (locate(problem, file.path, source.documents[0].location) for problem in problems)
    if problems:
        return NO_PRICES
    currency = str(value_of(data.get("currency")) or "USD")
    return Prices(currency, tuple(map(_to_price, data["prices"])))


def _find_wrong_entries(entries: Sequence[Mapping[str, Any]], environments: Sequence[str]) -> Iterator[Problem]:
    """Find what the schema cannot express: too many digits, unknown environments, and entries that never apply."""
    known: dict[str, list[tuple[int, Price]]] = {}
    for index, entry in enumerate(entries):
        hourly = value_of(entry["hourly"])
        number = Decimal(str(hourly))
        if not number.is_finite() or number != round(number, _DIGITS):
            message = Sentence(
                "`hourly` is `{}`, and must have at most {} digits after the point, such as `2.5`", hourly, _DIGITS
            )
            yield Problem("invalid-value", message, entry["hourly"])
            continue
        price = _to_price(entry)
        wanted = price.fields.get("environment")
        if wanted is not None and wanted not in environments:
            meant = find_closest(wanted, list(environments))
            message = Sentence(
                "there is no environment `{}`{}", wanted, ask_for(meant) or "; remove the entry, or name an overlay"
            )
            yield Problem("invalid-value", message, entry["match"]["environment"], meant=meant)
        earlier = known.setdefault(price.resource, [])
        # They are for all pods that this one is for.
        wider = (
            place
            for place, other in earlier
            if other.fields.items() <= price.fields.items() and other.labels.items() <= price.labels.items()
        )
        first = next(wider, None)
        if first is not None:
            message = Sentence("`prices[{}]` is never used, because `prices[{}]` matches first", index, first)
            message += "; write the special price before the general one"
            yield Problem("invalid-value", message, entry["resource"])
        earlier.append((index, price))


def _to_price(entry: Mapping[str, Any]) -> Price:
    plain: Any = untraced(dict(entry))
    fields = dict(plain.get("match") or {})
    labels = fields.pop("nodeSelector", {})
    # `str` of a number is the shortest text that means it, so 2.3 is exactly 2.3.
    hourly = int(Decimal(str(plain["hourly"])).scaleb(_DIGITS))
    return Price(str(plain["resource"]), hourly, fields, labels)


UNKNOWN = -1
"""A cost or a time that is not known."""


class LongestRun(NamedTuple):
    """The most that one run of a job can take."""

    deadline: int = 0
    """In seconds, with the restarts for which the time starts again; 0 if it has none."""
    gpu_seconds: int = UNKNOWN
    cost: int = UNKNOWN
    """In thousandths of the currency, rounded up."""
    is_counted: bool = False
    """True if it is part of the sums: an active job that requests GPUs, or other resources with a price."""
    is_scheduled: bool = False
    """True if a schedule starts it again and again."""


class CostTotal(NamedTuple):
    """The most that one run of each job can take."""

    environment: str
    by: str
    name: str
    jobs: int
    bounded: int
    """Jobs with a deadline."""
    priced: int
    """Jobs with a deadline and a price."""
    scheduled: int
    gpu_seconds: int
    cost: int


def find_longest_run(snapshot: Snapshot, cell: FleetCell, prices: Prices, flavors: JobFlavors) -> LongestRun:
    """Find the longest run of a job in an environment."""
    if not cell.objects:
        return LongestRun()
    manifests = [snapshot.manifest(each) for each in cell.objects]
    kind, deadline = find_workload(manifests[0].group, manifests[0].kind_name), find_deadline(manifests[0])
    priced = manifests if prices != NO_PRICES else ()
    resources = frozenset(entry.resource for entry in prices.entries)
    amounts = [each for manifest in priced for each in list_amounts(manifest, resources)]
    run = LongestRun(
        is_counted=cell.state == ACTIVE and bool(cell.resources.gpus or amounts),
        is_scheduled=kind is not None and kind.scheduled,
    )
    if not deadline:
        return run
    hourly = _sum_prices(cell, amounts, prices, flavors)
    cost = UNKNOWN if hourly is None else ceil(hourly * deadline * 1000 / (3600 * 10**_DIGITS))
    return run._replace(deadline=deadline, gpu_seconds=deadline * cell.resources.gpus, cost=cost)


def _sum_prices(
    cell: FleetCell, amounts: Sequence[RequestedAmount], prices: Prices, flavors: JobFlavors
) -> Fraction | None:
    """Return what an hour of all pods costs, in millionths; None if a resource has no price.

    The highest price among the flavors that pods can get counts.
    """
    key = (cell.environment, cell.kind, cell.namespace, cell.name)
    total = Fraction(0)
    for each in amounts:
        role = each.pod.role.replica_type.lower() if each.pod.role else ""
        selector = as_mapping(each.pod.spec.get("nodeSelector"))
        selected = {str(label): as_text(value) for label, value in selector.items()}
        highest = 0
        for flavor, labels in flavors.find(key, role, each.resource):
            target = PriceTarget(cell.environment, cell.namespace, cell.queue, flavor, {**selected, **labels})
            price = prices.find(each.resource, target)
            if price is None:
                return None
            highest = max(highest, price)
        total += each.amount * highest
    return total if amounts else None


def sum_costs(fleet: Fleet, runs: Iterable[LongestRun], prices: Prices) -> Iterator[CostTotal]:
    """Sum up the longest runs by environment, team and queue."""
    sums: dict[tuple[str, str, str], list[int]] = {}
    for cell, run in zip(fleet.cells, runs, strict=True):
        if not run.is_counted:
            continue
        flags = (True, run.deadline > 0, run.cost != UNKNOWN, run.is_scheduled)
        amounts = (*map(int, flags), max(run.gpu_seconds, 0), max(run.cost, 0))
        for by, name in (("environment", cell.environment), ("team", cell.team), ("queue", cell.queue)):
            known = sums.setdefault((cell.environment, by, name), [0] * len(amounts))
            sums[cell.environment, by, name] = [one + other for one, other in zip(known, amounts, strict=True)]
    order = ("environment", "team", "queue")
    for env, by, name in sorted(sums, key=lambda key: (fleet.environments.index(key[0]), order.index(key[1]), key[2])):
        total = CostTotal(env, by, name, *sums[env, by, name])
        yield total if prices != NO_PRICES else total._replace(cost=UNKNOWN)


_QUOTA, _BUDGET = "ResourceQuota", "budget"
_MAX_ERRORS = 10


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
    manifests: list[Manifest] = []
    for each in snapshot.objects:
        if each.env == env:
            wrapped = list_wrapped_objects(each.object) if is_app_wrapper(each.object) else ()
            manifests += (snapshot.manifest(each), *(snapshot.checker(env).manifest(obj) for _, obj in wrapped))
    yield from _list_quotas(env, manifests, state) if state else ()
    yield from _list_budgets(env, manifests, cluster.budgets)


def _measure_share(used: int, limit: int) -> int:
    if limit <= 0:
        return 0 if used <= 0 else 1001
    return -(-used * 1000 // limit)


def _read_quotas(snapshot: Snapshot, env: str, cluster: Cluster) -> ClusterState | None:
    """Read the state of the cluster, as `exceeds-quota` does; None if it has no ResourceQuota."""
    root = snapshot.project.root
    exported: list[Mapping[str, Any]] = []
    if cluster.state and folder_exists(root, cluster.state):
        exported += read_exported(snapshot.project.layers, cluster.state, [])
    kinds = list_kinds_to_read((), with_references=bool(cluster.complete))
    own: list[Any] = [
        each.object for each in snapshot.objects if each.env == env and name_object(each.object)[0] in kinds
    ]
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
    for fact in (fact for manifest in manifests for fact in collect_gpus(manifest)) if budgets else ():
        taken.setdefault(fact.value[0], []).append(fact.value)
    for group in ("namespaces", "teams"):
        for name, budget in sorted(budgets.get(group, {}).items()):
            limit = budget.get("gpus")
            if limit is not None:
                gpus = sum_gpus((value[1], value[4]) for value in taken.get((group, name), ()))
                owner = f"{group.removesuffix('s')} {name}"
                yield Limit(env, _BUDGET, owner, "", "GPUs", str(gpus), str(limit), _measure_share(gpus, limit))


class QueueState(NamedTuple):
    """The queues of an environment: the decision about its jobs, and the tree of queues and cohorts."""

    report: EnvironmentReport
    context: AdmissionContext
    owners: Mapping[tuple[str, str], tuple[str, Mapping[FlavorResource, Quota]]]
    """The cohort above each ClusterQueue and Cohort, and its own quota, by kind and name."""
    forecast: Forecast

    def find_owner(self, total: Total) -> tuple[str, Quota]:
        """Return the cohort above a queue or cohort, and its own quota for the resource of a total."""
        parent, quotas = self.owners.get((total.kind, total.name), ("", {}))
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
        for finding in failed[:_MAX_ERRORS]:
            place = finding.location
            where = f"{place.file}:{place.line}" if place.line else place.file
            errors.append((env, f"{where}: {finding.message}"))
        if queued is not None and queued.context.queues and not failed:
            report, context = decide_environment(env, queued, lambda _: False), queued.context
            # Queues and cohorts are as the version of Kueue reads them.
            owners = {("ClusterQueue", each.name): (each.cohort, each.quotas) for each in context.queues.values()}
            owners |= {("Cohort", each.name): (each.parent, each.quotas) for each in context.cluster.list_cohorts()}
            to_come = forecast(report, queued, snapshot.project.day())
            queues.append(QueueState(report, context, owners, to_come))
    answers: dict[ObjectKey, tuple[Answer, ...]] = {}
    for state in queues:
        for answer in state.report.decision.answers:
            key = (state.report.environment, answer.job.kind, answer.job.namespace, answer.job.name)
            answers[key] = (*answers.get(key, ()), answer)
    flavors = JobFlavors(answers, {each.report.environment: each.context for each in queues})
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
