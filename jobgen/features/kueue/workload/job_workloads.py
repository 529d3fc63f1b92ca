"""From job objects to Workloads: what Kueue's controllers create for a job, with all that they add to its pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from jobgen.features.kueue.cluster_objects import ClusterObjects
from jobgen.features.kueue.objects import as_mapping, name_of
from jobgen.features.kueue.pod_sets import (
    ALL_GATES,
    Gates,
    RawPodSet,
    count_workloads,
    fill_defaults,
    list_pod_sets,
    parse_gates,
)
from jobgen.features.kueue.version.versions import (
    CHARGED,
    REJECTED,
    list_unknown_annotations,
    renames_resources,
    treat_claims,
)
from jobgen.features.kueue.workload.adjust import adjust_pod_sets, read_overhead
from jobgen.features.kueue.workload.devices import charge_claims, find_renamed, read_templates
from jobgen.features.kueue.workload.limit_ranges import Summary, summarize
from jobgen.features.kueue.workload.priority import Priority, PriorityClasses, find_priority, read_classes
from jobgen.features.kueue.workload.requests import NO_SETTINGS, ResourceSettings, sum_amounts
from jobgen.features.kueue.workload.workloads import PodSet, Workload, parse_workload
from jobgen.model.named_tuple import NamedTuple

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
DEFAULT_QUEUE: Final = "default"
MAX_WORKLOADS: Final = 2000
"""The most workloads of one job that are simulated: each replica of some kinds is one."""
_CLASS_KINDS: Final = frozenset(("PriorityClass", "WorkloadPriorityClass"))
_MAX_POD_SETS: Final[tuple[tuple[tuple[int, ...], int], ...]] = (((0, 19), 18), ((0, 18), 10), ((), 8))


class JobContext(NamedTuple):
    """What of a cluster decides about the workload of a job. Read it once for all jobs."""

    settings: ResourceSettings = NO_SETTINGS
    ranges: Mapping[str, Summary] = {}
    """What the LimitRanges of each namespace say."""
    overheads: Mapping[str, Mapping[str, Any]] = {}
    classes: PriorityClasses = PriorityClasses()
    default_queues: frozenset[str] = frozenset()
    """The namespaces that have a LocalQueue `default`."""
    templates: Mapping[tuple[str, str], Mapping[str, Any]] = {}
    renamed: Mapping[str, str] = {}
    """Extended resources that are charged under another name, because a device class provides them."""
    max_pod_sets: int = 18
    gates: Gates = ALL_GATES
    has_default_class: bool = False
    """Whether a WorkloadPriorityClass `default` is that of jobs without one."""
    claims: str = CHARGED
    """What becomes of the claims of pods."""
    known_kinds: frozenset[str] = _CLASS_KINDS
    """The kinds of priority classes of which the files have any: a class that is missing does not exist then."""


class BuiltWorkload(NamedTuple):
    """The workload of a job."""

    workload: Workload
    priority: Priority
    error: str = ""
    """Why Kueue creates no workload, or never admits it; empty if it can."""


def read_context(cluster: ClusterObjects) -> JobContext:
    """Read what decides about the workloads of jobs."""
    by_namespace: dict[str, list[Mapping[str, Any]]] = {}
    for each in cluster.list_objects("LimitRange"):
        by_namespace.setdefault(find_namespace(each), []).append(each)
    gates, settings = cluster.configuration.gates, cluster.configuration.resources
    unknown = list_unknown_annotations(cluster.configuration.version)
    return JobContext(
        settings=settings,
        ranges={namespace: summarize(several) for namespace, several in by_namespace.items()},
        overheads=dict(map(read_overhead, cluster.list_objects("RuntimeClass"))),
        classes=read_classes(cluster.list_objects("WorkloadPriorityClass"), cluster.list_objects("PriorityClass")),
        default_queues=frozenset(
            find_namespace(each)
            for each in cluster.list_objects("LocalQueue")
            if name_of(each) == DEFAULT_QUEUE and gates["LocalQueueDefaulting"]
        ),
        templates=read_templates(cluster.list_objects("ResourceClaimTemplate")),
        renamed=find_renamed(cluster.list_objects("DeviceClass"), settings.devices) if renames_resources(gates) else {},
        known_kinds=frozenset(kind for kind in _CLASS_KINDS if cluster.list_objects(kind)),
        max_pod_sets=next(most for since, most in _MAX_POD_SETS if cluster.configuration.version >= since),
        gates=parse_gates(gates)._replace(unknown=unknown),
        has_default_class=gates["WorkloadPriorityClassDefaulting"],
        claims=treat_claims(gates),
    )


def build_workloads(
    obj: Mapping[str, Any],
    context: JobContext,
    *,
    job_set: Mapping[str, Any] | None = None,
    members: Sequence[Mapping[str, Any]] = (),
) -> list[BuiltWorkload]:
    """Build all workloads of a job object: one, or one for each replica; none if Kueue has no integration for it."""
    first = build_workload(obj, context, job_set=job_set, members=members)
    if first is None:
        return []
    total = min(count_workloads(obj), MAX_WORKLOADS)
    if total == 1:
        return [first]
    return [
        first._replace(workload=first.workload._replace(key=f"{first.workload.key}-{index}")) for index in range(total)
    ]


def build_workload(
    obj: Mapping[str, Any],
    context: JobContext,
    *,
    job_set: Mapping[str, Any] | None = None,
    members: Sequence[Mapping[str, Any]] = (),
) -> BuiltWorkload | None:
    """Build the workload of a job object, or of one of its replicas; None if Kueue has no integration for it.

    `job_set` and `members` are as in `list_pod_sets`. The workload has the name of the job.
    """
    raw = list_pod_sets(fill_defaults(obj), job_set=job_set, members=members, gates=context.gates)
    if raw is None:
        return None
    namespace = find_namespace(obj)
    pod_sets = adjust_pod_sets(raw, context.overheads, context.ranges.get(namespace, {}))
    priority = find_priority(obj, raw, context.classes, has_default_class=context.has_default_class)
    workload = parse_workload(_make_object(obj, pod_sets, find_queue(obj, context), priority), context.settings)
    charged, error = _charge_devices(workload, context)
    is_known = priority.missing.partition(" ")[0] in context.known_kinds
    missing = f"{priority.missing} does not exist" if is_known else ""
    return BuiltWorkload(charged, priority, missing or _check_size(obj, raw, context) or error)


def _check_size(obj: Mapping[str, Any], pod_sets: Sequence[RawPodSet], context: JobContext) -> str:
    """Return why a workload cannot have these pod sets; empty if it can."""
    if not pod_sets:
        is_expanded = obj.get("kind") == "TrainJob"
        return "the runtime of the TrainJob is not among the files" if is_expanded else "it has no pods"
    if len(pod_sets) > context.max_pod_sets:
        return f"it has {len(pod_sets)} pod sets, but a workload can have at most {context.max_pod_sets}"
    return ""


def find_queue(obj: Mapping[str, Any], context: JobContext) -> str:
    """Return the LocalQueue of a job: the one that it names, or `default` if its namespace has it; else empty."""
    named = as_mapping(as_mapping(obj.get("metadata")).get("labels")).get(QUEUE_LABEL)
    if isinstance(named, str) and named:
        return named
    return DEFAULT_QUEUE if find_namespace(obj) in context.default_queues else ""


def _make_object(obj: Mapping[str, Any], pod_sets: list[RawPodSet], queue: str, priority: Priority) -> dict[str, Any]:
    metadata = as_mapping(obj.get("metadata"))
    return {
        "metadata": {
            "name": get_job_name(obj),
            "namespace": find_namespace(obj),
            "annotations": as_mapping(metadata.get("annotations")),
            "labels": as_mapping(metadata.get("labels")),
        },
        "spec": {"queueName": queue, "podSets": pod_sets, "priority": priority.value},
    }


def _charge_devices(workload: Workload, context: JobContext) -> tuple[Workload, str]:
    """Charge the devices that pods claim; return why this is not possible, too."""
    if context.claims == REJECTED and any(each.spec.get("resourceClaims") for each in workload.pod_sets):
        return workload, "it claims devices, but the feature gate `KueueDRAIntegration` is off"
    changed: list[PodSet] = []
    for each in workload.pod_sets:
        claiming = each.spec if context.claims == CHARGED else {}
        charge = charge_claims(claiming, workload.namespace, context.templates, context.settings.devices)
        if charge.error:
            return workload, charge.error
        requests = each.requests
        for extended in requests.keys() & context.renamed.keys():
            amount = requests[extended]
            rest = {name: value for name, value in requests.items() if name != extended}
            requests = sum_amounts(rest, {context.renamed[extended]: amount})
        if charge.amounts:
            requests = sum_amounts(requests, charge.amounts)
        changed.append(each if requests is each.requests else replace(each, requests=requests))
    return workload._replace(pod_sets=tuple(changed)), ""


def get_job_name(obj: Mapping[str, Any]) -> str:
    """Return the name of a job; if the API server completes it, what it starts with."""
    metadata = as_mapping(obj.get("metadata"))
    return str(metadata.get("name") or metadata.get("generateName") or "")


def find_namespace(obj: Mapping[str, Any]) -> str:
    """Return the namespace of an object; `default` if it names none."""
    return str(as_mapping(obj.get("metadata")).get("namespace") or "default")
