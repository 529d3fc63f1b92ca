"""Kinds that run pods: who runs them, and where they are suspended and deleted. One table, by group and kind.

It holds whether or not a kind file describes the kind, because raw manifests of all these kinds are checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step, parse_dotted
from jobgen.spec.replicas import ItemPath, ReplicaLayout, count_pods, get_at


class Workload(NamedTuple):
    """What is known of a kind that runs pods; a path is empty if the kind has no such field."""

    operator: str
    """The name of its operator, as users write it in `cluster.operators`."""
    suspend: tuple[str, ...] = ()
    """The path of the field that deletes its pods or keeps them from being created."""
    ttl: tuple[str, ...] = ()
    """The path of the field that deletes the whole object some time after it has finished."""
    queue: tuple[str, ...] = ()
    """The path of the field with the queue of its own scheduler."""
    scheduled: bool = False
    lifecycle: str = ""
    """The paths in its spec that no pod depends on, separated by spaces: admission, deadlines, retries, cleanup."""

    @property
    def lifecycle_paths(self) -> list[tuple[str, ...]]:
        """The paths in its spec that no pod depends on."""
        return [tuple(path.split(".")) for path in self.lifecycle.split()]


_SUSPEND, _TTL = ("spec", "suspend"), ("spec", "ttlSecondsAfterFinished")
_JOB_LIFECYCLE = "suspend ttlSecondsAfterFinished activeDeadlineSeconds backoffLimit managedBy"
_RAY_LIFECYCLE = "preRunningDeadlineSeconds shutdownAfterJobFinishes deletionStrategy"
_TENSORSTACK = Workload(
    "tensorstack",
    ("spec", "runMode", "pause", "enabled"),
    queue=("spec", "scheduler", "t9kScheduler", "queue"),
    lifecycle="runMode.pause scheduler.t9kScheduler.queue scheduler.t9kScheduler.priority cleanUpPolicy",
)
# The descriptions of these kinds have the fields that no pod depends on.
_TRAINING_JOB = _TENSORSTACK._replace(lifecycle="")

WORKLOADS: Mapping[tuple[str, str], Workload] = {
    ("batch", "CronJob"): Workload("kubernetes", scheduled=True),
    ("batch", "Job"): Workload("kubernetes", _SUSPEND, _TTL, lifecycle=_JOB_LIFECYCLE),
    ("batch.tensorstack.dev", "BeamJob"): _TENSORSTACK._replace(suspend=()),
    ("batch.tensorstack.dev", "ColossalAIJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "DeepSpeedJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "GenericJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "MPIJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "PyTorchTrainingJob"): _TRAINING_JOB,
    ("batch.tensorstack.dev", "TensorFlowTrainingJob"): _TRAINING_JOB,
    ("batch.tensorstack.dev", "XGBoostTrainingJob"): _TRAINING_JOB,
    ("batch.volcano.sh", "CronJob"): Workload("volcano", scheduled=True),
    ("batch.volcano.sh", "Job"): Workload(
        "volcano",
        ttl=_TTL,
        queue=("spec", "queue"),
        lifecycle="queue ttlSecondsAfterFinished maxRetry minAvailable runningEstimate",
    ),
    ("jobset.x-k8s.io", "JobSet"): Workload(
        "jobset", _SUSPEND, _TTL, lifecycle="suspend ttlSecondsAfterFinished managedBy"
    ),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): Workload("leaderworkerset"),
    ("ray.io", "RayCluster"): Workload("kuberay", _SUSPEND),
    ("ray.io", "RayCronJob"): Workload("kuberay", scheduled=True),
    # The TTL of a RayJob deletes its RayCluster and keeps the RayJob.
    ("ray.io", "RayJob"): Workload("kuberay", _SUSPEND, lifecycle=f"{_JOB_LIFECYCLE} {_RAY_LIFECYCLE}"),
    ("ray.io", "RayService"): Workload("kuberay", _SUSPEND),
    ("workload.codeflare.dev", "AppWrapper"): Workload("appwrapper", _SUSPEND),
}


def find_workload(group: str, kind: str) -> Workload | None:
    """Return what is known of a kind, if it is in the table."""
    return WORKLOADS.get((group, kind))


def find_ttl_path(group: str, kind: str, operator: str) -> tuple[str, ...]:
    """Return the path of the field that deletes a finished object; `operator` is that of its kind description."""
    found = find_workload(group, kind)
    if found is not None:
        return found.ttl
    # mpi-operator deletes only the launcher's pods and keeps the job.
    return () if operator in ("", "mpi-operator") else ("spec", "runPolicy", "ttlSecondsAfterFinished")


# The pods of each kind: their roles, where their templates are, and how many there are. One description for each kind.


class PodSet(NamedTuple):
    """Pods of one template in objects of a kind. Paths but `at` and `stopped_by` start at the item of the role."""

    role: str
    """The name of the role; `{field}` is the value of that field in its item."""
    at: str
    """The path of its item; `*` is every item of a list."""
    template: str = "template"
    counts: str = ""
    """Paths of the number of pods, separated by spaces: the smallest applies, and the first is `omitted` if missing."""
    omitted: int = 1
    least: str = ""
    most: str = ""
    times: str = ""
    """Path of a factor of the number of pods; 1 if it is missing."""
    leader: str = ""
    """Path of the template of another pod that is one of these, if it is there."""
    mode: tuple[str, ...] = ()
    """A field, and the values with which the pods are created."""
    stopped_by: str = ""
    """Paths of fields that keep the pods from being created if they are true; below the item if they start with `.`."""
    complete: str = ""
    """The item whose template is complete, such as `[type=worker]`; the operator completes those of the others."""
    index_labels: tuple[str, ...] = ()
    """The labels that number its pods: within the role, and within each of its groups."""


class FoundPods(NamedTuple):
    """The pods of one template in an object."""

    pod_set: PodSet
    role: str
    path: ItemPath
    item: Mapping[str, Any]
    template: Any
    total: int
    """How many pods there are while nothing stops them."""
    is_stopped: bool


_COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
_JOB_COUNTS = "parallelism completions"
_REPLICAS = (PodSet("", "spec", counts="replicas"),)


def _describe_ray_cluster(at: str, stopped_by: str = "") -> tuple[PodSet, ...]:
    stops = f"{at}.suspend {stopped_by}"
    return (
        PodSet("head", f"{at}.headGroupSpec", stopped_by=stops),
        PodSet(
            "{groupName}",
            f"{at}.workerGroupSpecs.*",
            counts="replicas",
            omitted=0,
            least="minReplicas",
            most="maxReplicas",
            times="numOfHosts",
            stopped_by=f"{stops} .suspend",
        ),
    )


def _describe_ray_job(at: str, stopped_by: str = "") -> tuple[PodSet, ...]:
    stops = f"{at}.suspend {stopped_by}"
    submitter = PodSet(
        "submitter", at, "submitterPodTemplate", mode=("submissionMode", "", "K8sJobMode"), stopped_by=stops
    )
    return (*_describe_ray_cluster(f"{at}.rayClusterSpec", stops), submitter)


def _describe_replica_types(field: str, *types: str) -> tuple[PodSet, ...]:
    label = "training.kubeflow.org/replica-index"
    return tuple(PodSet(name, f"spec.{field}.{name}", counts="replicas", index_labels=(label,)) for name in types)


RAY_CLUSTERS: Mapping[str, tuple[str, ...]] = {
    "RayCluster": ("spec",),
    "RayJob": ("spec", "rayClusterSpec"),
    "RayService": ("spec", "rayClusterConfig"),
}
POD_SETS: Mapping[tuple[str, str], tuple[PodSet, ...]] = {
    # Kubernetes
    ("", "Pod"): (PodSet("", "", ""),),
    ("", "PodTemplate"): (PodSet("", "", omitted=0),),
    ("", "ReplicationController"): _REPLICAS,
    # Its number of nodes is unknown.
    ("apps", "DaemonSet"): (PodSet("", "spec"),),
    ("apps", "Deployment"): (PodSet("", "spec", times="replicas"),),
    ("apps", "ReplicaSet"): _REPLICAS,
    ("apps", "StatefulSet"): _REPLICAS,
    ("batch", "Job"): (
        PodSet("", "spec", counts=_JOB_COUNTS, stopped_by="spec.suspend", index_labels=(_COMPLETION_INDEX,)),
    ),
    ("batch", "CronJob"): (
        PodSet("", "spec.jobTemplate.spec", counts=_JOB_COUNTS, stopped_by="spec.suspend .suspend"),
    ),
    # TensorStack
    ("batch.tensorstack.dev", "GenericJob"): (PodSet("{type}", "spec.replicaSpecs.*", counts="replicas"),),
    ("batch.tensorstack.dev", "DeepSpeedJob"): (PodSet("worker", "spec.worker", counts="replicas"),),
    **{
        ("batch.tensorstack.dev", kind): (
            PodSet("{type}", "spec.replicaSpecs.*", counts="replicas", complete="[type=worker]"),
        )
        for kind in ("ColossalAIJob", "MPIJob")
    },
    # Volcano
    ("batch.volcano.sh", "Job"): (PodSet("{name}", "spec.tasks.*", counts="replicas", omitted=0),),
    ("batch.volcano.sh", "CronJob"): (
        PodSet("{name}", "spec.jobTemplate.spec.tasks.*", counts="replicas", omitted=0, stopped_by="spec.suspend"),
    ),
    # JobSet, LeaderWorkerSet
    ("jobset.x-k8s.io", "JobSet"): (
        PodSet(
            "{name}",
            "spec.replicatedJobs.*",
            "template.spec.template",
            "template.spec.parallelism template.spec.completions",
            times="replicas",
            stopped_by="spec.suspend",
            index_labels=(_COMPLETION_INDEX, "jobset.sigs.k8s.io/job-index"),
        ),
    ),
    # A group has one leader and `size - 1` workers; without a template of its own, the leader is like a worker.
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        PodSet("leader", "spec", "leaderWorkerTemplate.leaderTemplate", times="replicas"),
        PodSet(
            "worker",
            "spec",
            "leaderWorkerTemplate.workerTemplate",
            "leaderWorkerTemplate.size",
            times="replicas",
            leader="leaderWorkerTemplate.leaderTemplate",
            index_labels=("leaderworkerset.sigs.k8s.io/worker-index",),
        ),
    ),
    # KubeRay
    ("ray.io", "RayCluster"): _describe_ray_cluster("spec"),
    ("ray.io", "RayJob"): _describe_ray_job("spec"),
    ("ray.io", "RayService"): _describe_ray_cluster("spec.rayClusterConfig"),
    ("ray.io", "RayCronJob"): _describe_ray_job("spec.jobTemplate", "spec.suspend"),
}
REPLICA_TYPES: Mapping[tuple[str, str], tuple[PodSet, ...]] = {
    ("kubeflow.org", "JAXJob"): _describe_replica_types("jaxReplicaSpecs", "Worker"),
    ("kubeflow.org", "MPIJob"): _describe_replica_types("mpiReplicaSpecs", "Launcher", "Worker"),
    ("kubeflow.org", "PaddleJob"): _describe_replica_types("paddleReplicaSpecs", "Master", "Worker"),
    ("kubeflow.org", "PyTorchJob"): _describe_replica_types("pytorchReplicaSpecs", "Master", "Worker"),
    ("kubeflow.org", "TFJob"): _describe_replica_types(
        "tfReplicaSpecs", "Chief", "Master", "PS", "Worker", "Evaluator"
    ),
    ("kubeflow.org", "XGBoostJob"): _describe_replica_types("xgbReplicaSpecs", "Master", "Worker"),
}
"""The roles of kinds that have a kind file, in the order in which Kueue and AppWrapper list them."""
_TEMPLATES_ONLY = {
    ("flow.volcano.sh", "JobTemplate"): ("spec.tasks.*.template",),
    ("kueue.x-k8s.io", "Workload"): ("spec.podSets.*.template",),
}
"""Templates from which nothing is created, or by other objects."""
_CLAIMS: Mapping[tuple[str, str], str] = {
    ("jobset.x-k8s.io", "JobSet"): "spec.volumeClaimPolicies.*.templates.*.metadata.name",
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): "spec.leaderWorkerTemplate.volumeClaimTemplates.*.metadata.name",
}
"""Where the names of claims are that operators add to the volumes of pods."""


@cache
def list_template_paths(group: str, kind: str) -> tuple[tuple[Step, ...], ...]:
    """Return the paths of the pod templates in objects of a kind; an empty path is the object itself."""
    pod_sets = POD_SETS.get((group, kind), ())
    pairs = ((each.at.replace("*", each.complete or "*"), each.template) for each in pod_sets)
    paths = (".".join(filter(None, pair)) for pair in pairs)
    return tuple(map(parse_dotted, (*paths, *_TEMPLATES_ONLY.get((group, kind), ()))))


@cache
def list_claim_paths(group: str, kind: str) -> tuple[tuple[Step, ...], ...]:
    """Return the paths of the names of volumes that the operator of a kind adds to its pods."""
    found = _CLAIMS.get((group, kind))
    return (parse_dotted(found),) if found else ()


def find_pods(obj: Mapping[str, Any], pod_sets: Sequence[PodSet]) -> Iterator[FoundPods]:
    """Yield the pods of an object, in the order of its description."""
    for pod_set in pod_sets:
        template, role = _parse(pod_set.template), pod_set.role
        for path, item in _find_items(obj, _parse(pod_set.at)):
            yield FoundPods(
                pod_set,
                as_text(item.get(role[1:-1])) if role.startswith("{") else role,
                (*path, *map(str, template)),
                item,
                get_at(item, template),
                count_pod_set(pod_set, item),
                _is_stopped(pod_set, item, obj),
            )


def _find_items(
    node: Plain, steps: Sequence[Step], path: ItemPath = ()
) -> Iterator[tuple[ItemPath, Mapping[str, Any]]]:
    """Yield the items at a path; one that is missing is empty."""
    if not steps:
        yield path, as_mapping(node)
    elif steps[0] == "*":
        for index, item in enumerate(as_list(node)):
            if isinstance(item, dict):
                yield from _find_items(item, steps[1:], (*path, index))
    else:
        key = str(steps[0])
        yield from _find_items(as_mapping(node).get(key), steps[1:], (*path, key))


def _is_stopped(pod_set: PodSet, item: Mapping[str, Any], obj: Mapping[str, Any]) -> bool:
    if pod_set.mode and as_text(item.get(pod_set.mode[0])) not in pod_set.mode[1:]:
        return True
    return any(
        get_at(item if field.startswith(".") else obj, _parse(field.removeprefix("."))) is True
        for field in pod_set.stopped_by.split()
    )


def count_pod_set(pod_set: PodSet, item: Mapping[str, Any], *, is_one_group: bool = False) -> int:
    """Return how many pods an item has while nothing stops them; with `is_one_group`, without the factor `times`."""
    count = count_pods(item, _read_layout(pod_set), pod_set.omitted) if pod_set.counts else pod_set.omitted
    if pod_set.leader and isinstance(get_at(item, _parse(pod_set.leader)), dict):
        count = max(count - 1, 0)
    factor = as_integer(get_at(item, _parse(pod_set.times))) if pod_set.times and not is_one_group else None
    return count if factor is None else count * max(factor, 0)


def count_job_pods(spec: Mapping[str, Any]) -> int:
    """Return how many pods a Job with this spec has at the same time: never more than it has to complete."""
    return count_pod_set(POD_SETS["batch", "Job"][0], spec)


@cache
def _parse(path: str) -> tuple[Step, ...]:
    return parse_dotted(path)


@cache
def _read_layout(pod_set: PodSet) -> ReplicaLayout:
    counts = tuple(map(_parse, pod_set.counts.split()))
    return ReplicaLayout(counts=counts, least=_parse(pod_set.least), most=_parse(pod_set.most))
