"""Gangs that their queue of Volcano never has room for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.operators.checks import is_since
from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.k8s.resources import count_pods, format_amount
from jobgen.model.data import Node, value_of
from jobgen.model.quantity import to_milli
from jobgen.model.suggest import find_key

if TYPE_CHECKING:
    from jobgen.check.cluster.state import ClusterState

_QUEUE_LABEL = "volcano.sh/queue-name"
_VOLCANO = "batch.volcano.sh"
_KINDS = (
    *("CronJob", "Job", "PodGroup", "RayCluster", "RayJob"),
    *("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"),
)


class _Task(NamedTuple):
    """Pods of one template: what each requests in thousandths, how many there are, and how many must start."""

    requests: Mapping[str, int]
    replicas: int
    least: int


class _Gang(NamedTuple):
    """What must start together, with the node that names its queue."""

    queue: Node
    tasks: list[_Task]
    least: int
    """How many pods must start together."""
    resources: Mapping[str, Node]
    """What they need together, if the object says so."""
    is_default: bool = False
    """True if the object does not say how many pods must start."""

    def find_need(self, resource: str) -> int:
        """Return the least of a resource that the gang can start with."""
        declared = to_milli(self.resources.get(resource)) or 0
        fixed = sum(task.least for task in self.tasks)
        kept = [task.least if fixed <= self.least else 0 for task in self.tasks]
        need = sum(count * task.requests.get(resource, 0) for count, task in zip(kept, self.tasks, strict=True))
        missing = self.least - sum(kept)
        rest = (
            (task.requests.get(resource, 0), task.replicas - count)
            for count, task in zip(kept, self.tasks, strict=True)
        )
        for amount, count in sorted(rest):
            need += amount * min(count, max(missing, 0))
            missing -= count
        return max(declared, need)


@rule("cluster", ERROR, kinds=_KINDS)
def gang_beyond_queue(manifest: Manifest, state: ClusterState) -> Iterator[Violation]:
    """A gang that needs more than its queue of Volcano can ever use, so that it never starts.

    Volcano starts the pods of a gang together, when all of them fit into the `capability` of the queue and of the
    queues above it. A gang that needs more waits forever: its pods stay `Pending`, or are never created. The rule
    applies if the Queue is among the files, or in the folder `cluster.state`. The gang is `minAvailable` pods, by
    default all of them. It is a warning if the gang fits because of `minPartitions`, but not all pods together.

    Volcano also rejects jobs for a queue that is closed, or that has queues below it.

    Request less, start fewer pods, or raise `capability`.
    """
    gang = _find_gang(manifest, state)
    queue = state.volcano_queues.get(as_text(gang.queue) or "default") if gang else None
    if gang is None or queue is None:
        return
    name = as_text(get_path(queue, "metadata", "name"))
    node = gang.queue if as_text(gang.queue) else find_key(manifest.object, "spec")
    closed = as_text(get_path(queue, "status", "state"))
    if manifest.group == _VOLCANO and closed in ("Closed", "Closing"):
        yield Violation(node, f"queue `{name}` is closed, so Volcano rejects the job; use another queue, or open it")
        return
    below = [key for key, each in state.volcano_queues.items() if as_text(get_path(each, "spec", "parent")) == name]
    if manifest.group == _VOLCANO and below and is_since(manifest, "volcano", "1.11"):
        message = f"queue `{name}` has other queues below it, so Volcano rejects the job; use one of them"
        yield Violation(node, f"{message}, such as `{below[0]}`", evidence=(name,))
        return
    for owner, resource, most in _list_capabilities(queue, state):
        allowed, need = to_milli(most), gang.find_need(resource)
        total = sum(task.replicas * task.requests.get(resource, 0) for task in gang.tasks)
        if allowed is None or max(need, total) <= allowed or not (need > allowed or gang.is_default):
            continue
        is_certain = need > allowed
        wanted, shown = (format_amount(resource, need if is_certain else total), value_of(most))
        what = "the gang of the job needs" if is_certain else "all pods of the job together need"
        effect = "its pods stay Pending forever" if is_certain else "some pods stay Pending while the others run"
        message = (
            f"{what} `{wanted}` of `{resource}`, but the `capability` of queue `{owner}` is `{shown}`, so {effect}"
        )
        related = ((most, f"`capability` of queue `{owner}`"),)
        severity = None if is_certain else WARNING
        yield Violation(node, f"{message}; request less, or raise `capability`", related, severity)


def _list_capabilities(queue: Mapping[str, Node], state: ClusterState) -> Iterator[tuple[str, str, Node]]:
    """Yield the limits of a queue and of those above it: the name of the queue, the resource and the amount."""
    seen: set[str] = set()
    while queue and (name := as_text(get_path(queue, "metadata", "name"))) not in seen:
        seen.add(name)
        for resource, amount in as_mapping(get_path(queue, "spec", "capability")).items():
            yield name, str(resource), amount
        queue = state.volcano_queues.get(as_text(get_path(queue, "spec", "parent")), {})


def _find_gang(manifest: Manifest, state: ClusterState) -> _Gang | None:
    if manifest.group == "scheduling.volcano.sh":
        return _Gang(manifest.spec.get("queue"), [], 0, as_mapping(manifest.spec.get("minResources")))
    if manifest.group == _VOLCANO:
        is_job = manifest.kind_name == "Job"
        return _read_job(
            manifest, manifest.spec if is_job else as_mapping(get_path(manifest.spec, "jobTemplate", "spec")), state
        )
    tasks = [_Task(_read_requests(pod, state), count, 0) for pod, count in count_pods(manifest) if count]
    if manifest.group == "ray.io":
        cluster = (
            manifest.spec if manifest.kind_name == "RayCluster" else as_mapping(manifest.spec.get("rayClusterSpec"))
        )
        # With the autoscaler, fewer pods are enough.
        scales = value_of(cluster.get("enableInTreeAutoscaling")) is True
        queue = manifest.labels.get(_QUEUE_LABEL)
        return _Gang(queue, tasks, sum(task.replicas for task in tasks), {}) if as_text(queue) and not scales else None
    policy = as_mapping(manifest.run_policy.get("schedulingPolicy"))
    least = as_integer(policy.get("minAvailable"))
    count = sum(task.replicas for task in tasks) if least is None else least
    queue = policy.get("queue")
    return _Gang(queue, tasks, count, as_mapping(policy.get("minResources"))) if as_text(queue) else None


def _read_job(manifest: Manifest, spec: Mapping[str, Node], state: ClusterState) -> _Gang:
    """Read a Job of Volcano with the defaults that its webhook sets."""
    tasks: list[_Task] = []
    for task in iter_mappings(spec.get("tasks")):
        policy = as_mapping(task.get("partitionPolicy"))
        partitions = (as_integer(policy.get("minPartitions")) or 0) * (as_integer(policy.get("partitionSize")) or 0)
        count, least = max(as_integer(task.get("replicas")) or 0, 0), as_integer(task.get("minAvailable"))
        pod = Pod(as_mapping(task.get("template")), manifest)
        tasks.append(
            _Task(_read_requests(pod, state), count, min(partitions or count if least is None else least, count))
        )
    declared = as_integer(spec.get("minAvailable"))
    least = declared or sum(task.least for task in tasks)
    is_default = not declared and not any("minAvailable" in task for task in iter_mappings(spec.get("tasks")))
    return _Gang(spec.get("queue"), tasks, least, {}, is_default)


def _read_requests(pod: Pod, state: ClusterState) -> dict[str, int]:
    from jobgen.check.cluster.pod_resources import resolve_pod_resources

    ranges = state.limit_ranges.get(pod.manifest.namespace, ())
    return {name: each.milli for name, each in resolve_pod_resources(pod, ranges, state.release).requests.items()}
