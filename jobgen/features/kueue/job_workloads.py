"""The workloads that Kueue makes of a job: whether it manages the job, their priority and their pod sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from jobgen.features.kueue.cluster_objects import ClusterObjects
from jobgen.features.kueue.configuration import (
    CHARGED,
    REJECTED,
    Configuration,
    list_unknown_annotations,
    renames_resources,
    treat_claims,
)
from jobgen.features.kueue.match import matches_selector
from jobgen.features.kueue.objects import as_list, as_mapping, name_of
from jobgen.features.kueue.pod_sets import ALL_GATES, count_workloads, fill_defaults, list_pod_sets
from jobgen.features.kueue.raw_pod_set import Gates, RawPodSet, parse_gates
from jobgen.features.kueue.requests import (
    NO_SETTINGS,
    ResourceSettings,
    Summary,
    adjust_pod_sets,
    charge_claims,
    find_renamed,
    read_overhead,
    read_templates,
    sum_amounts,
    summarize,
    to_nanos,
)
from jobgen.features.kueue.workloads import PodSet, Workload, parse_workload
from jobgen.k8s.nodes import get_path
from jobgen.model.quantity import parse_quantity

PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"
_DEFAULT_CLASS = "default"
# Kubernetes creates these.
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
# Kinds whose scheduling policy can name a PriorityClass.
_WITH_POLICY = frozenset(("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"))


class PriorityClasses(NamedTuple):
    """The values of the classes of a cluster, by name."""

    workload: Mapping[str, int] = {}
    pod: Mapping[str, int] = _SYSTEM_CLASSES
    default: int = 0


class Priority(NamedTuple):
    """The priority of a workload, and why it has it."""

    value: int
    class_name: str = ""
    missing: str = ""
    """What does not exist, such as ``WorkloadPriorityClass `high` ``; Kueue creates no workload then."""


def read_classes(workload: Iterable[Mapping[str, Any]], pod: Iterable[Mapping[str, Any]]) -> PriorityClasses:
    """Read WorkloadPriorityClasses and PriorityClasses. Of several default classes, the lowest value counts."""
    pod_classes = [*pod]
    defaults = [_read_value(each) for each in pod_classes if each.get("globalDefault") is True]
    return PriorityClasses(
        {name_of(each): _read_value(each) for each in workload},
        {**_SYSTEM_CLASSES, **{name_of(each): _read_value(each) for each in pod_classes}},
        min(defaults, default=0),
    )


def _read_value(obj: Mapping[str, Any]) -> int:
    value = obj.get("value")
    return value if type(value) is int else 0


def find_priority(
    obj: Mapping[str, Any],
    pod_sets: Iterable[Mapping[str, Any]],
    classes: PriorityClasses,
    *,
    has_default_class: bool = False,
) -> Priority:
    """Find the priority of a job; `has_default_class` is the gate WorkloadPriorityClassDefaulting."""
    label = as_mapping(as_mapping(obj.get("metadata")).get("labels")).get(PRIORITY_LABEL)
    if not label and has_default_class and _DEFAULT_CLASS in classes.workload:
        label = _DEFAULT_CLASS
    if label:
        return _look_up(str(label), classes.workload, "WorkloadPriorityClass")
    of_pods = (get_path(each, "template", "spec", "priorityClassName") for each in pod_sets)
    name = _find_policy_class(obj) or next((str(each) for each in of_pods if each), "")
    return _look_up(name, classes.pod, "PriorityClass") if name else Priority(classes.default)


def _look_up(name: str, values: Mapping[str, int], kind: str) -> Priority:
    if name not in values:
        return Priority(0, name, f"{kind} `{name}`")
    return Priority(values[name], name)


def _find_policy_class(obj: Mapping[str, Any]) -> str:
    if obj.get("kind") not in _WITH_POLICY:
        return ""
    policy = as_mapping(as_mapping(as_mapping(obj.get("spec")).get("runPolicy")).get("schedulingPolicy"))
    return str(policy.get("priorityClass") or "")


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


_COUNTS: Final = frozenset(("completions", "instances", "numNodes", "numOfHosts", "parallelism", "replicas", "size"))
_MAX_SHOWN = 60


def find_unreadable(obj: Mapping[str, Any], pod_sets: Iterable[PodSet]) -> str:
    """Return the first number of pods or request of a job that is not valid; empty if all are."""
    return next(_list_counts(obj.get("spec")), "") or next(_list_requests(pod_sets), "")


def _list_counts(node: Any) -> Iterator[str]:
    """Yield numbers of pods that are no numbers, outside of the templates of pods."""
    if isinstance(node, list):
        for each in node:
            yield from _list_counts(each)
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        if key in _COUNTS and value is not None and (type(value) is not int or value < 0):
            yield f"`{key}` is `{_show_value(value)}`, and must be a whole number that is not negative"
        elif key != "template" or "template" in as_mapping(as_mapping(value).get("spec")):
            yield from _list_counts(value)


def _list_requests(pod_sets: Iterable[PodSet]) -> Iterator[str]:
    for pod_set in pod_sets:
        for field in ("containers", "initContainers"):
            for container in map(as_mapping, as_list(pod_set.spec.get(field))):
                resources = as_mapping(container.get("resources"))
                for several in ("requests", "limits"):
                    yield from _list_quantities(as_mapping(resources.get(several)))


def _list_quantities(quantities: Mapping[str, Any]) -> Iterator[str]:
    for name, value in quantities.items():
        nanos = to_nanos(value)
        if nanos < 0:
            yield f"`{_show_value(name)}` is `{_show_value(value)}`, and must not be negative"
        elif not nanos and value is not None and (type(value) is bool or parse_quantity(str(value)) is None):
            yield f"`{_show_value(name)}` is `{_show_value(value)}`, which is not a quantity"


def _show_value(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


Version = tuple[int, ...]

_NEVER: Final = (10**6,)
_SYSTEM_NAMESPACES = ("kube-system", "kueue-system")
_SELECTOR_SINCE = (0, 10)


class Integration(NamedTuple):
    """The part of Kueue that manages a kind. The manifests and the chart of each release enable a list of them."""

    framework: str
    since: Version
    on_since: Version = _NEVER
    """The first release whose configuration enables it."""
    off_since: Version = _NEVER
    """The first release whose configuration no longer enables it."""

    def is_on_by_default(self, version: Version) -> bool:
        """Return whether the configuration of a release enables it."""
        return self.on_since <= version < self.off_since


INTEGRATIONS: Final[Mapping[tuple[str, str], Integration]] = {
    ("apps/v1", "Deployment"): Integration("deployment", (0, 9), (0, 16)),
    ("apps/v1", "StatefulSet"): Integration("statefulset", (0, 9), (0, 16)),
    ("batch/v1", "Job"): Integration("batch/job", (0, 1), (0, 1)),
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): Integration("jobset.x-k8s.io/jobset", (0, 4), (0, 4)),
    ("kubeflow.org/v1", "JAXJob"): Integration("kubeflow.org/jaxjob", (0, 12), (0, 12), (0, 19)),
    ("kubeflow.org/v1", "PaddleJob"): Integration("kubeflow.org/paddlejob", (0, 5), (0, 5), (0, 19)),
    ("kubeflow.org/v1", "PyTorchJob"): Integration("kubeflow.org/pytorchjob", (0, 5), (0, 5), (0, 19)),
    ("kubeflow.org/v1", "TFJob"): Integration("kubeflow.org/tfjob", (0, 5), (0, 5), (0, 19)),
    ("kubeflow.org/v1", "XGBoostJob"): Integration("kubeflow.org/xgboostjob", (0, 5), (0, 5), (0, 19)),
    ("kubeflow.org/v2beta1", "MPIJob"): Integration("kubeflow.org/mpijob", (0, 3), (0, 4)),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): Integration(
        "leaderworkerset.x-k8s.io/leaderworkerset", (0, 11), (0, 16)
    ),
    ("ray.io/v1", "RayCluster"): Integration("ray.io/raycluster", (0, 6), (0, 6)),
    ("ray.io/v1", "RayJob"): Integration("ray.io/rayjob", (0, 4), (0, 4)),
    ("ray.io/v1", "RayService"): Integration("ray.io/rayservice", (0, 17), (0, 17)),
    ("sparkoperator.k8s.io/v1beta2", "SparkApplication"): Integration("sparkoperator.k8s.io/sparkapplication", (0, 17)),
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): Integration("trainer.kubeflow.org/trainjob", (0, 14), (0, 14)),
    ("v1", "Pod"): Integration("pod", (0, 5), (0, 16)),
    ("workload.codeflare.dev/v1beta2", "AppWrapper"): Integration(
        "workload.codeflare.dev/appwrapper", (0, 11), (0, 11)
    ),
}
"""The integrations by API version and kind."""


class Unmanaged(NamedTuple):
    """Why Kueue does not manage a job."""

    reason: str
    change: str = ""
    """What would make Kueue manage it; empty if nothing does."""


def find_integration(obj: Mapping[str, Any]) -> Integration | None:
    """Return the integration for an object; None if no version of Kueue has one."""
    return INTEGRATIONS.get((str(obj.get("apiVersion")), str(obj.get("kind"))))


def explain_unmanaged(
    obj: Mapping[str, Any], queue: str, configuration: Configuration, labels: Mapping[str, str] | None = None
) -> Unmanaged | None:
    """Explain why Kueue does not manage a job; None if it does.

    `queue` is the queue of the job, and `labels` are those of its namespace, None if they are not known.
    """
    kind, integration = str(obj.get("kind", "")), find_integration(obj)
    if integration is None:
        named = f"{kind} of `{obj.get('apiVersion')}`"
        group = str(obj.get("apiVersion")).rpartition("/")[0]
        others = [api for api, known in INTEGRATIONS if known == kind and api.rpartition("/")[0] == group]
        change = f"use `{others[0]}`" if others else ""
        return Unmanaged(f"Kueue has no integration for {named}, so it starts at once", change)
    spec = as_mapping(obj.get("spec"))
    if kind == "RayJob" and not isinstance(spec.get("rayClusterSpec"), dict):
        return Unmanaged("it runs in an existing RayCluster, so it starts at once", "queue the RayCluster instead")
    found = _explain_version(kind, integration, configuration)
    if found is not None:
        return found
    if not queue and not configuration.manages_unqueued:
        start = "only `suspend` keeps it from starting" if spec.get("suspend") is True else "it starts at once"
        return Unmanaged(f"it names no queue, so {start}", "add the label `kueue.x-k8s.io/queue-name`")
    return _explain_namespace(obj, queue, configuration, labels)


def _explain_version(kind: str, integration: Integration, configuration: Configuration) -> Unmanaged | None:
    """Explain that an integration does not exist or is off."""
    version, name = configuration.version, integration.framework
    if version < integration.since:
        reason = f"Kueue {_show_version(version)} has no integration for {kind}, so it starts at once"
        return Unmanaged(reason, f"update Kueue to {_show_version(integration.since)}")
    if configuration.frameworks is not None:
        if name in configuration.frameworks:
            return None
        reason = f"the integration `{name}` is not among the `frameworks` of Kueue, so it starts at once"
        return Unmanaged(reason, f"add `{name}` to `frameworks`")
    if integration.is_on_by_default(version):
        return None
    since = f" since {_show_version(integration.off_since)}" if version >= integration.off_since else ""
    kueue = f"Kueue {_show_version(version)}"
    reason = f"{kueue} does not enable its integration `{name}` by default{since}, so it starts at once"
    return Unmanaged(
        reason, f"enable `{name}` in the configuration of Kueue, and list it in `cluster.kueue.frameworks`"
    )


def _explain_namespace(
    obj: Mapping[str, Any], queue: str, configuration: Configuration, labels: Mapping[str, str] | None
) -> Unmanaged | None:
    """Explain that Kueue does not manage the jobs of a namespace."""
    if configuration.version < _SELECTOR_SINCE:
        return None
    if queue and not configuration.gates["ManagedJobsNamespaceSelectorAlwaysRespected"]:
        return None
    namespace = str(as_mapping(obj.get("metadata")).get("namespace") or "default")
    selector = configuration.namespace_selector
    if selector is None:
        if namespace not in _SYSTEM_NAMESPACES:
            return None
        return Unmanaged(f"Kueue does not manage jobs in `{namespace}`, so it starts at once", "use another namespace")
    if matches_selector(selector, labels):
        return None
    reason = f"`managedJobsNamespaceSelector` of Kueue does not select namespace `{namespace}`, so it starts at once"
    return Unmanaged(reason, "change the labels of the namespace, or the selector")


def _show_version(version: Version) -> str:
    return ".".join(map(str, version[:2]))
