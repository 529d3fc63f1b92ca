"""The workloads that Kueue makes of a job: whether it manages the job, their priority and their pod sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from jobgen.features.kueue.admission_context import AdmissionContext
from jobgen.features.kueue.answers import Job
from jobgen.features.kueue.claims import ClaimFacts, charge_claims, find_renamed, read_claim_facts
from jobgen.features.kueue.cluster_objects import (
    CHARGED,
    REJECTED,
    ClusterObjects,
    Configuration,
    get_group,
    group_objects,
    list_unknown_annotations,
    parse_configuration,
    treat_claims,
)
from jobgen.features.kueue.match import matches_selector
from jobgen.features.kueue.objects import as_list, as_mapping, find_namespace, name_of
from jobgen.features.kueue.obstacles import Obstacle
from jobgen.features.kueue.pod_sets import (
    ALL_GATES,
    MAX_COUNT,
    Gates,
    count_workloads,
    fill_defaults,
    get_group_name,
    list_pod_sets,
    parse_gates,
)
from jobgen.features.kueue.requests import (
    NO_SETTINGS,
    ResourceSettings,
    Summary,
    adjust_pod_sets,
    find_invalid_requests,
    read_overhead,
    sum_amounts,
    summarize,
    to_nanos,
)
from jobgen.features.kueue.workloads import PodSet, Workload, parse_workload
from jobgen.k8s.kueue_integrations import (
    INTEGRATIONS,
    MULTIKUEUE,
    SELECTOR_SINCE,
    STARTS,
    explain_conflict,
    explain_dispatch,
    explain_integration,
    is_release_since,
)
from jobgen.k8s.nodes import get_path
from jobgen.model.features import find_part
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import parse_quantity
from jobgen.spec.overlay import Cluster

PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"
# Kubernetes creates these.
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
# Kinds whose scheduling policy can name a PriorityClass.
_WITH_POLICY = frozenset(("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"))


def _read_value(obj: Mapping[str, Any]) -> int:
    value = obj.get("value")
    return value if type(value) is int else 0


def find_priority(
    obj: Mapping[str, Any], pod_sets: Iterable[Mapping[str, Any]], context: JobContext
) -> tuple[int, str]:
    """Return the priority of a job, and which class does not exist, such as ``WorkloadPriorityClass `high` ``."""
    name: Any = get_path(obj, "metadata", "labels", PRIORITY_LABEL)
    values = context.workload_classes
    if not name and context.has_default_class and "default" in values:
        name = "default"
    kind = "WorkloadPriorityClass"
    if not name:
        policy = get_path(obj, "spec", "runPolicy", "schedulingPolicy", "priorityClass")
        of_pods = (get_path(each, "template", "spec", "priorityClassName") for each in pod_sets)
        names = (policy if obj.get("kind") in _WITH_POLICY else None, *of_pods)
        name, values, kind = next(filter(None, names), None), context.pod_classes, "PriorityClass"
    if not name:
        return context.default_priority, ""
    return values.get(str(name), 0), "" if str(name) in values else f"{kind} `{name}`"


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
    workload_classes: Mapping[str, int] = {}
    pod_classes: Mapping[str, int] = _SYSTEM_CLASSES
    default_priority: int = 0
    default_queues: frozenset[str] = frozenset()
    """The namespaces that have a LocalQueue `default`."""
    facts: ClaimFacts = ClaimFacts()
    """What claims for devices refer to."""
    renamed: Mapping[str, str] = {}
    """Extended resources that are charged under another name, because a device class provides them."""
    max_pod_sets: int = 18
    gates: Gates = ALL_GATES
    has_default_class: bool = False
    """True if a WorkloadPriorityClass `default` is that of jobs without one."""
    claims: str = CHARGED
    """What becomes of the claims of pods."""
    known_kinds: frozenset[str] = _CLASS_KINDS
    """The kinds of priority classes of which the files have any: a class that is missing does not exist then."""


class BuiltWorkload(NamedTuple):
    """The workload of a job."""

    workload: Workload
    missing: str
    """The priority class that does not exist; Kueue creates no workload then."""
    error: str = ""
    """Why Kueue creates no workload, or never admits it; empty if it can."""


def read_context(cluster: ClusterObjects) -> JobContext:
    """Read what decides about the workloads of jobs."""
    by_namespace: dict[str, list[Mapping[str, Any]]] = {}
    for each in cluster.list_objects("LimitRange"):
        by_namespace.setdefault(find_namespace(each), []).append(each)
    pod_classes = cluster.list_objects("PriorityClass")
    gates, settings = cluster.configuration.gates, cluster.configuration.resources
    unknown = list_unknown_annotations(cluster.configuration.version)
    return JobContext(
        settings=settings,
        ranges={namespace: summarize(several) for namespace, several in by_namespace.items()},
        overheads=dict(map(read_overhead, cluster.list_objects("RuntimeClass"))),
        workload_classes={name_of(each): _read_value(each) for each in cluster.list_objects("WorkloadPriorityClass")},
        pod_classes={**_SYSTEM_CLASSES, **{name_of(each): _read_value(each) for each in pod_classes}},
        # Of several default classes, the lowest value counts.
        default_priority=min(
            (_read_value(each) for each in pod_classes if each.get("globalDefault") is True), default=0
        ),
        default_queues=frozenset(
            find_namespace(each)
            for each in cluster.list_objects("LocalQueue")
            if name_of(each) == DEFAULT_QUEUE and gates["LocalQueueDefaulting"]
        ),
        facts=read_claim_facts(cluster),
        renamed=find_renamed(cluster.list_objects("DeviceClass"), settings.devices)
        if gates["KueueDRAIntegration"] and gates["KueueDRAIntegrationExtendedResource"]
        else {},
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
    namespace, metadata = find_namespace(obj), as_mapping(obj.get("metadata"))
    priority, missing = find_priority(obj, raw, context)
    made = {
        "metadata": {
            "name": get_job_name(obj),
            "namespace": namespace,
            "annotations": as_mapping(metadata.get("annotations")),
            "labels": as_mapping(metadata.get("labels")),
        },
        "spec": {
            "queueName": find_queue(obj, context),
            "podSets": adjust_pod_sets(raw, context.overheads, context.ranges.get(namespace, {})),
            "priority": priority,
        },
    }
    workload, error = charge_devices(parse_workload(made, context.settings), context)
    if missing.partition(" ")[0] in context.known_kinds:
        error = f"{missing} does not exist"
    elif not raw:
        is_expanded = obj.get("kind") == "TrainJob"
        error = "the runtime of the TrainJob is not among the files" if is_expanded else "it has no pods"
    elif len(raw) > context.max_pod_sets:
        error = f"it has {len(raw)} pod sets, but a workload can have at most {context.max_pod_sets}"
    return BuiltWorkload(workload, missing, error)


def find_queue(obj: Mapping[str, Any], context: JobContext) -> str:
    """Return the LocalQueue of a job: the one that it names, or `default` if its namespace has it; else empty."""
    named = as_mapping(as_mapping(obj.get("metadata")).get("labels")).get(QUEUE_LABEL)
    if isinstance(named, str) and named:
        return named
    return DEFAULT_QUEUE if find_namespace(obj) in context.default_queues else ""


def charge_devices(workload: Workload, context: JobContext) -> tuple[Workload, str]:
    """Charge the devices that pods claim; also return why this is not possible."""
    if context.claims == REJECTED and any(each.spec.get("resourceClaims") for each in workload.pod_sets):
        return workload, "it claims devices, but the feature gate `KueueDRAIntegration` is off"
    changed: list[PodSet] = []
    for each in workload.pod_sets:
        claiming = each.spec if context.claims == CHARGED else {}
        charged = charge_claims(claiming, workload.namespace, context.facts)
        if isinstance(charged, str):
            return workload, charged
        requests = each.requests
        for extended in requests.keys() & context.renamed.keys():
            amount = requests[extended]
            rest = {name: value for name, value in requests.items() if name != extended}
            requests = sum_amounts(rest, {context.renamed[extended]: amount})
        if charged:
            requests = sum_amounts(requests, charged)
        changed.append(each if requests is each.requests else replace(each, requests=requests))
    return workload._replace(pod_sets=tuple(changed)), ""


def get_job_name(obj: Mapping[str, Any]) -> str:
    """Return the name of a job; if the API server completes it, what it starts with."""
    metadata = as_mapping(obj.get("metadata"))
    return str(metadata.get("name") or metadata.get("generateName") or "")


_COUNTS: Final = frozenset(("completions", "instances", "numNodes", "numOfHosts", "parallelism", "replicas", "size"))


def find_unreadable(obj: Mapping[str, Any], pod_sets: Sequence[PodSet]) -> str:
    """Return the first number of pods or request of a job that is not valid; empty if all are."""
    many = (f"`{each.name}` has more than {MAX_COUNT} pods, the most" for each in pod_sets if each.count > MAX_COUNT)
    return next(chain(_list_counts(obj.get("spec")), many, _list_requests(pod_sets)), "")


def _list_counts(node: Any) -> Iterator[str]:
    """Yield numbers of pods that are no numbers or too large, outside of the templates of pods."""
    if isinstance(node, list):
        for each in node:
            yield from _list_counts(each)
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        # A number of more than 64 bits is read as one with a fraction.
        is_whole = type(value) is int or (type(value) is float and value.is_integer())
        if key in _COUNTS and is_whole and value > MAX_COUNT:
            yield f"`{key}` is `{_show_value(int(value))}`, and must be at most {MAX_COUNT}"
        elif key in _COUNTS and value is not None and (type(value) is not int or value < 0):
            yield f"`{key}` is `{_show_value(value)}`, and must be a whole number that is not negative"
        elif key != "template" or "template" in as_mapping(as_mapping(value).get("spec")):
            yield from _list_counts(value)


def _list_requests(pod_sets: Iterable[PodSet]) -> Iterator[str]:
    """Yield requests and limits that are negative, or no quantities."""
    for pod_set in pod_sets:
        containers = [*as_list(pod_set.spec.get("containers")), *as_list(pod_set.spec.get("initContainers"))]
        for resources in (as_mapping(as_mapping(each).get("resources")) for each in containers):
            requests, limits = (as_mapping(resources.get(name)) for name in ("requests", "limits"))
            for name, value in (*requests.items(), *limits.items()):
                nanos = to_nanos(value)
                if nanos < 0:
                    yield f"`{_show_value(name)}` is `{_show_value(value)}`, and must not be negative"
                elif not nanos and value is not None and (type(value) is bool or parse_quantity(str(value)) is None):
                    yield f"`{_show_value(name)}` is `{_show_value(value)}`, which is not a quantity"


def _show_value(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def explain_unmanaged(
    obj: Mapping[str, Any], queue: str, configuration: Configuration, labels: Mapping[str, str] | None = None
) -> Obstacle | None:
    """Explain why Kueue does not manage a job; None if it does.

    `queue` is the queue of the job, and `labels` are those of its namespace, None if they are not known.
    """
    kind = str(obj.get("kind", ""))
    integration = INTEGRATIONS.get((str(obj.get("apiVersion")), kind))
    if integration is None:
        named = f"{kind} of `{obj.get('apiVersion')}`"
        group = str(obj.get("apiVersion")).rpartition("/")[0]
        others = [api for api, known in INTEGRATIONS if known == kind and api.rpartition("/")[0] == group]
        change = f"use `{others[0]}`" if others else ""
        return Obstacle("unmanaged", f"Kueue does not manage {named}, {STARTS}", change)
    spec = as_mapping(obj.get("spec"))
    if kind == "RayJob" and not isinstance(spec.get("rayClusterSpec"), dict):
        if queue and not is_release_since(configuration.version, SELECTOR_SINCE):
            reason = f"Kueue before {SELECTOR_SINCE} rejects a RayJob with a queue that uses an existing RayCluster"
            return Obstacle("invalid", reason, "remove the queue, or update Kueue")
        return Obstacle("unmanaged", f"it runs in an existing RayCluster, {STARTS}", "queue the RayCluster instead")
    found = explain_integration(kind, integration, configuration.version, configuration.frameworks)
    if found is not None:
        return Obstacle("unmanaged", *found)
    if not queue and not configuration.manages_unqueued:
        start = "only `suspend` keeps it from starting" if spec.get("suspend") is True else "it starts at once"
        return Obstacle("unmanaged", f"it names no queue, so {start}", "add the label `kueue.x-k8s.io/queue-name`")
    return _explain_namespace(obj, queue, configuration, labels)


def _explain_namespace(
    obj: Mapping[str, Any], queue: str, configuration: Configuration, labels: Mapping[str, str] | None
) -> Obstacle | None:
    """Explain that Kueue does not manage the jobs of a namespace."""
    if configuration.version < (0, 10):
        return None
    if queue and not configuration.gates["ManagedJobsNamespaceSelectorAlwaysRespected"]:
        return None
    namespace = find_namespace(obj)
    selector = configuration.namespace_selector
    if selector is None:
        if namespace not in ("kube-system", "kueue-system"):
            return None
        return Obstacle("unmanaged", f"Kueue does not manage jobs in `{namespace}`, {STARTS}", "use another namespace")
    if matches_selector(selector, labels):
        return None
    reason = f"`managedJobsNamespaceSelector` of Kueue does not select namespace `{namespace}`, {STARTS}"
    return Obstacle("unmanaged", reason, "change the labels of the namespace, or the selector")


# The jobs of a cluster as Kueue sees them: which ones it manages, and the workloads that it makes of them.

_KINDS = frozenset(kind for _, kind in INTEGRATIONS)

Object = Mapping[str, Any]


class QueuedJobs(NamedTuple):
    """The jobs of a cluster, and the queues that they are admitted by."""

    context: AdmissionContext
    jobs: tuple[Job, ...]
    exported: tuple[Object, ...] = ()
    """The Workload objects in the exported state."""


def collect_jobs(objects: Sequence[Object], exported: Sequence[Object], cluster: Cluster) -> QueuedJobs:
    """Collect jobs and queues from plain objects. Jobs are only taken from `objects`, the rest from both."""
    configuration = parse_configuration(cluster.kueue, cluster.find_version("kueue"), cluster.feature_gates)
    known = group_objects((*objects, *exported), configuration)
    reader = JobReader(known, cluster)
    jobs = name_apart([job for obj, members in _group_pods(objects) for job in reader.read(obj, members)])
    if reader.remarks:
        known = known._replace(unread=(*dict.fromkeys(reader.remarks), *known.unread))
    context = AdmissionContext(known, sorted({job.namespace for job in jobs}))
    return QueuedJobs(context, tuple(map(remove_placements, jobs)) if context.ignores_topology else jobs)


def _group_pods(objects: Sequence[Object]) -> Iterator[tuple[Object, Sequence[Object]]]:
    """Yield objects, each with the pods of its group. The pods of a group are one object with the name of the group."""
    groups: dict[tuple[str, str], list[Object]] = {}
    names = [get_group_name(obj) if obj.get("kind") == "Pod" else "" for obj in objects]
    for obj, name in zip(objects, names, strict=True):
        if name:
            groups.setdefault((find_namespace(obj), name), []).append(obj)
    for obj, name in zip(objects, names, strict=True):
        if not name:
            yield obj, ()
        elif members := groups.pop((find_namespace(obj), name), None):
            yield {**obj, "metadata": {**obj["metadata"], "name": name}}, members


def name_apart(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Return jobs whose workloads have different keys, also if jobs of several kinds have the same name."""
    shared = {
        key for key, several in Counter(each.key for job in jobs for each in job.workloads).items() if several > 1
    }
    numbers = Counter[str]()

    def rename(workload: Workload, kind: str) -> Workload:
        if workload.key not in shared:
            return workload
        key = f"{workload.key} ({kind})"
        numbers[key] += 1
        return workload._replace(key=f"{key} {numbers[key]}" if numbers[key] > 1 else key)

    return tuple(
        job._replace(workloads=tuple(rename(each, job.kind) for each in job.workloads)) if shared else job
        for job in jobs
    )


def remove_placements(job: Job) -> Job:
    """Return a job that asks for no placement."""
    workloads = (
        each._replace(pod_sets=tuple(replace(pod_set, topology=None) for pod_set in each.pod_sets))
        for each in job.workloads
    )
    return job._replace(workloads=tuple(workloads))


_MANAGED_BY: Final = (("spec", "managedBy"), ("spec", "runPolicy", "managedBy"))


def find_remote_queues(known: ClusterObjects) -> frozenset[tuple[str, str]]:
    """Return namespace and name of the LocalQueues whose jobs MultiKueue runs in worker clusters."""
    checks = {
        name_of(each)
        for each in known.list_objects("AdmissionCheck")
        if as_mapping(each.get("spec")).get("controllerName") == MULTIKUEUE
    }
    queues = {each.name for each in known.list_queues() if checks and any(name in checks for name, _ in each.checks)}
    return frozenset(
        (find_namespace(each), name_of(each))
        for each in known.list_objects("LocalQueue")
        if str(as_mapping(each.get("spec")).get("clusterQueue")) in queues
    )


class JobReader:
    """Reads job objects, with the objects that their workloads depend on."""

    def __init__(self, known: ClusterObjects, cluster: Cluster) -> None:
        self._known = known
        self._cluster = cluster
        context = read_context(known)
        self._context = context._replace(known_kinds=context.known_kinds | {*cluster.complete})
        self._labels = known.list_namespaces()
        self._remote_queues = find_remote_queues(known)
        self.remarks: list[str] = []
        """What is not simulated."""
        self._configuration = known.configuration
        if not cluster.find_version("kueue") and self._configuration.frameworks is None:
            # Which integrations are on is not known.
            frameworks = frozenset(each.framework for each in INTEGRATIONS.values())
            self._configuration = self._configuration._replace(frameworks=frameworks)

    def read(self, obj: Object, members: Sequence[Object] = ()) -> Iterator[Job]:
        """Yield the job of an object; none if it is of a kind that Kueue does not know.

        `members` are the pods of the group of a pod.
        """
        built = build_workloads(obj, self._context, job_set=self._expand(obj), members=members)
        if not built:
            yield from self._read_unmanaged(obj)
            return
        first = built[0].workload
        job = Job(str(obj.get("kind", "")), first.namespace, get_job_name(obj), first.queue)
        unmanaged = explain_unmanaged(obj, first.queue, self._configuration, self._labels.get(first.namespace))
        if unmanaged is not None:
            yield job._replace(obstacle=unmanaged)
            return
        conflict = explain_conflict(job.kind, self._cluster)
        if conflict is not None:
            yield job._replace(obstacle=Obstacle("version", *conflict))
            return
        if (first.namespace, first.queue) in self._remote_queues:
            managed_by = next((value for path in _MANAGED_BY if (value := get_path(obj, *path))), "")
            kinds = self._configuration.external_kinds
            rejected = explain_dispatch(job.kind, str(managed_by), self._configuration.version, kinds)
            if rejected is not None:
                yield job._replace(obstacle=Obstacle("cluster", *rejected))
                return
        if not first.queue:
            message = "it names no queue, and Kueue keeps such jobs suspended"
            yield job._replace(obstacle=Obstacle("queue", message, "add the label `kueue.x-k8s.io/queue-name`"))
            return
        pod_sets = [{"template": {"spec": each.spec}} for each in first.pod_sets]
        ranges = self._context.ranges.get(first.namespace, {})
        error = built[0].error or find_unreadable(obj, first.pod_sets) or find_invalid_requests(pod_sets, ranges)
        missing = built[0].missing
        if error:
            invalid = Obstacle("invalid", error, "correct the job, or what it refers to")
            unknown = Obstacle("priority", error, "create the class, or name one that exists")
            yield job._replace(obstacle=unknown if missing else invalid)
            return
        remark = f"{missing} is not among the files; its value is assumed to be 0"
        if missing and remark not in self.remarks:
            self.remarks.append(remark)
        total = count_workloads(obj)
        if total > len(built):
            where = f"{job.kind} `{job.namespace}/{job.name}`"
            self.remarks.append(f"{where} has {total} workloads, of which only the first {len(built)} are simulated")
        yield job._replace(workloads=tuple(each.workload for each in built))

    def _read_unmanaged(self, obj: Object) -> Iterator[Job]:
        """Yield a job that has a queue, but is of a version or a form that Kueue does not know."""
        kind, queue, namespace = str(obj.get("kind", "")), find_queue(obj, self._context), find_namespace(obj)
        if not queue or kind not in _KINDS:
            return
        unmanaged = explain_unmanaged(obj, queue, self._configuration, self._labels.get(namespace))
        if unmanaged is not None:
            yield Job(kind, namespace, get_job_name(obj), queue, obstacle=unmanaged)

    def _expand(self, obj: Object) -> Object | None:
        if (get_group(obj), obj.get("kind")) != ("trainer.kubeflow.org", "TrainJob"):
            return None
        expand_train_job = find_part("operators.train_job")
        if expand_train_job is None:
            return None
        runtimes = [
            each for kind in ("ClusterTrainingRuntime", "TrainingRuntime") for each in self._known.list_objects(kind)
        ]
        job_set: Object = expand_train_job(obj, runtimes, self._cluster)
        return job_set or None
