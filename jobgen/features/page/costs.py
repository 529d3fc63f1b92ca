"""The longest time and the highest cost of one run of each job.

Git does not know how long jobs run. Only a deadline limits it. The time and the cost of a job without one are not
known, and are part of no sum.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from math import ceil
from typing import Any, NamedTuple

from jobgen.compare.snapshot import Snapshot
from jobgen.features.kueue.admission_context import AdmissionContext
from jobgen.features.kueue.answers import Answer
from jobgen.features.page.fleet import ACTIVE, Fleet, FleetCell
from jobgen.k8s.kueue import DOMAIN, get_kueue_queue
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.k8s.requested_amounts import RequestedAmount, list_amounts
from jobgen.k8s.workloads import find_workload
from jobgen.model.data import Location, Node, untraced, value_of
from jobgen.model.finding import Finding, Problem
from jobgen.model.suggest import did_you_mean
from jobgen.rendering.locate import locate
from jobgen.repo.files import File
from jobgen.repo.shipped import find_shipped
from jobgen.schema.own_formats import Check, compile_schema
from jobgen.yamlio.read import read

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
    seconds = [value * _count_attempts(manifest) for value in found if value is not None and value > 0]
    seconds += _find_job_set_deadline(manifest)
    label = as_text(manifest.labels.get(_MAX_TIME_LABEL))
    is_number = label.isascii() and label.isdigit() and len(label) <= _MAX_DIGITS
    if get_kueue_queue(manifest) is not None and is_number and int(label):
        seconds.append(int(label))
    return min(seconds, default=0)


def _count_attempts(manifest: Manifest) -> int:
    if manifest.group != "ray.io":
        return 1
    retries = [as_integer(get_path(manifest.spec, *path)) for path in _RETRIES]
    return 1 + max((number for number in retries if number is not None and number > 0), default=0)


def _find_job_set_deadline(manifest: Manifest) -> list[int]:
    """Return the longest deadline of the jobs of a JobSet, times its restarts; none if a job has no deadline."""
    jobs = as_list(manifest.spec.get("replicatedJobs")) if manifest.kind_name == "JobSet" else ()
    found = [as_integer(get_path(job, "template", "spec", _SECONDS)) or 0 for job in jobs]
    restarts = as_integer(get_path(manifest.spec, "failurePolicy", "maxRestarts")) or 0
    return [max(found) * (1 + max(restarts, 0))] if found and min(found) > 0 else []


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
        names = _list_admitted(answers, role, resource)
        if not names and context is not None:
            queues = [context.queues[each.cluster_queue] for each in answers if each.cluster_queue in context.queues]
            groups = [group for queue in queues if (group := queue.find_group(resource))]
            names = [flavor for group in groups for flavor in group.flavors]
        if context is None or not names:
            return [NO_FLAVOR]
        return [
            (name, context.flavors[name].labels if name in context.flavors else {}) for name in dict.fromkeys(names)
        ]


def _list_admitted(answers: Iterable[Answer], role: str, resource: str) -> list[str]:
    """Return the flavors of the pod set of a role; those of all pod sets if none has its name."""
    admitted = [each for answer in answers if answer.workload for each in answer.workload.admission]
    own = [each for each in admitted if each.name == role]
    return [each.flavors[resource] for each in own or admitted if resource in each.flavors]


_FORMAT = "prices_v1.json"
_DIGITS = 6
"""How many digits a price may have after the point; prices are kept as integers."""
_DEFAULT_CURRENCY = "USD"


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

    def matches(self, target: PriceTarget) -> bool:
        """Return True if the price is for these pods."""
        return self.labels.items() <= target.labels.items() and all(
            getattr(target, field) == value for field, value in self.fields.items()
        )


class Prices(NamedTuple):
    """All prices, in the order of the file."""

    currency: str
    entries: tuple[Price, ...]

    @property
    def resources(self) -> frozenset[str]:
        """The resources that have a price for some pods."""
        return frozenset(entry.resource for entry in self.entries)

    def find(self, resource: str, target: PriceTarget) -> int | None:
        """Return the price of the first entry that matches, in millionths; None if there is none."""
        found = (entry.hourly for entry in self.entries if entry.resource == resource and entry.matches(target))
        return next(found, None)


NO_PRICES = Prices("", ())


def read_prices(file: File, environments: Sequence[str], findings: list[Finding]) -> Prices:
    """Read a price file; what is wrong with it goes to `findings`."""
    if file.finding:
        findings.append(file.finding)
        return NO_PRICES
    source = read(file.content, file.path, traced=True)
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
    _compile()(data, "prices", data, problems)
    problems += () if problems else _find_wrong_entries(data["prices"], environments)
    findings += (locate(problem, file.path, source.documents[0].location) for problem in problems)
    if problems:
        return NO_PRICES
    currency = str(value_of(data.get("currency")) or _DEFAULT_CURRENCY)
    return Prices(currency, tuple(map(_to_price, data["prices"])))


@cache
def _compile() -> Check:
    schema = json.loads((find_shipped("schemas") / "jobgen.dev" / _FORMAT).read_text("utf-8"))
    return compile_schema(_FORMAT, {_FORMAT: schema})


def _find_wrong_entries(entries: Sequence[Mapping[str, Any]], environments: Sequence[str]) -> Iterator[Problem]:
    """Find what the schema cannot express: too many digits, unknown environments, and entries that never apply."""
    known: dict[str, list[tuple[int, Price]]] = {}
    for index, entry in enumerate(entries):
        if not _is_exact(entry["hourly"]):
            message = (
                f"`hourly` is `{value_of(entry['hourly'])}`, and must have at most {_DIGITS} digits after the point"
            )
            yield Problem("invalid-value", f"{message}, such as `2.5`", entry["hourly"])
            continue
        price = _to_price(entry)
        wanted = price.fields.get("environment")
        if wanted is not None and wanted not in environments:
            hint = did_you_mean(wanted, list(environments)) or "; remove the entry, or name an overlay"
            yield Problem("invalid-value", f"there is no environment `{wanted}`{hint}", entry["match"]["environment"])
        earlier = known.setdefault(price.resource, [])
        first = next((place for place, other in earlier if _includes(other, price)), None)
        if first is not None:
            message = f"`prices[{index}]` is never used, because `prices[{first}]` matches first"
            yield Problem(
                "invalid-value", f"{message}; write the special price before the general one", entry["resource"]
            )
        earlier.append((index, price))


def _is_exact(node: Node) -> bool:
    number = Decimal(str(value_of(node)))
    return number.is_finite() and number == round(number, _DIGITS)


def _includes(one: Price, other: Price) -> bool:
    """Return True if a price is for all pods that another one is for."""
    return one.fields.items() <= other.fields.items() and one.labels.items() <= other.labels.items()


def _to_price(entry: Mapping[str, Any]) -> Price:
    plain: Any = untraced(dict(entry))
    fields = dict(plain.get("match") or {})
    labels = fields.pop("nodeSelector", {})
    # `str` of a number is the shortest text that means it, so 2.3 is exactly 2.3.
    hourly = int(Decimal(str(plain["hourly"])).scaleb(_DIGITS))
    return Price(str(plain["resource"]), hourly, fields, labels)


UNKNOWN = -1
"""A cost or a time that is not known."""

_HOUR = 3600
_MILLIONTHS = 10**6


class LongestRun(NamedTuple):
    """The most that one run of a job can take."""

    deadline: int = 0
    """In seconds, with the restarts for which the time starts again; 0 if it has none."""
    gpu_seconds: int = UNKNOWN
    cost: int = UNKNOWN
    """In thousandths of the currency, rounded up."""
    is_counted: bool = False
    """Whether it is part of the sums: an active job that requests GPUs, or other resources with a price."""
    is_scheduled: bool = False
    """Whether a schedule starts it again and again."""


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
    amounts = [
        each
        for manifest in (manifests if prices != NO_PRICES else ())
        for each in list_amounts(manifest, prices.resources)
    ]
    run = LongestRun(
        is_counted=cell.state == ACTIVE and bool(cell.resources.gpus or amounts),
        is_scheduled=kind is not None and kind.scheduled,
    )
    if not deadline:
        return run
    hourly = _sum_prices(cell, amounts, prices, flavors)
    cost = UNKNOWN if hourly is None else ceil(hourly * deadline * 1000 / (_HOUR * _MILLIONTHS))
    return run._replace(deadline=deadline, gpu_seconds=deadline * cell.resources.gpus, cost=cost)


def _sum_prices(
    cell: FleetCell, amounts: Sequence[RequestedAmount], prices: Prices, flavors: JobFlavors
) -> Fraction | None:
    """Return what an hour of all pods costs, in millionths; None if a resource has no price."""
    total = Fraction(0)
    for each in amounts:
        found = _find_price(cell, each, prices, flavors)
        if found is None:
            return None
        total += each.amount * found
    return total if amounts else None


def _find_price(cell: FleetCell, each: RequestedAmount, prices: Prices, flavors: JobFlavors) -> int | None:
    """Return the highest price among the flavors that pods can get; None if one of them has none."""
    key = (cell.environment, cell.kind, cell.namespace, cell.name)
    role = each.pod.role.replica_type.lower() if each.pod.role else ""
    found: list[int] = []
    for flavor, labels in flavors.find(key, role, each.resource):
        selected = {**_read_node_selector(each.pod), **labels}
        price = prices.find(each.resource, PriceTarget(cell.environment, cell.namespace, cell.queue, flavor, selected))
        if price is None:
            return None
        found.append(price)
    return max(found)


def _read_node_selector(pod: Pod) -> dict[str, str]:
    return {str(key): as_text(value) for key, value in as_mapping(pod.spec.get("nodeSelector")).items()}


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
