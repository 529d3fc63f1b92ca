"""Where the pod templates are in objects of kinds that have no kind description."""

from __future__ import annotations

from functools import cache

from jobgen.model.path import Step, parse_dotted

_RAY_CLUSTER = ("headGroupSpec.template", "workerGroupSpecs.*.template")
_WORKLOAD = ("spec.template",)
_PATHS: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): ("",),
    ("", "PodTemplate"): ("template",),
    ("", "ReplicationController"): _WORKLOAD,
    ("apps", "DaemonSet"): _WORKLOAD,
    ("apps", "Deployment"): _WORKLOAD,
    ("apps", "ReplicaSet"): _WORKLOAD,
    ("apps", "StatefulSet"): _WORKLOAD,
    ("batch", "Job"): _WORKLOAD,
    ("batch", "CronJob"): ("spec.jobTemplate.spec.template",),
    ("batch.tensorstack.dev", "GenericJob"): ("spec.replicaSpecs.*.template",),
    ("batch.tensorstack.dev", "DeepSpeedJob"): ("spec.worker.template",),
    # The operator completes the template of a launcher.
    ("batch.tensorstack.dev", "ColossalAIJob"): ("spec.replicaSpecs.[type=worker].template",),
    ("batch.tensorstack.dev", "MPIJob"): ("spec.replicaSpecs.[type=worker].template",),
    ("batch.volcano.sh", "Job"): ("spec.tasks.*.template",),
    ("batch.volcano.sh", "CronJob"): ("spec.jobTemplate.spec.tasks.*.template",),
    ("jobset.x-k8s.io", "JobSet"): ("spec.replicatedJobs.*.template.spec.template",),
    ("kueue.x-k8s.io", "Workload"): ("spec.podSets.*.template",),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        "spec.leaderWorkerTemplate.leaderTemplate",
        "spec.leaderWorkerTemplate.workerTemplate",
    ),
    ("ray.io", "RayCluster"): tuple(f"spec.{path}" for path in _RAY_CLUSTER),
    ("ray.io", "RayJob"): (*(f"spec.rayClusterSpec.{path}" for path in _RAY_CLUSTER), "spec.submitterPodTemplate"),
    ("ray.io", "RayService"): tuple(f"spec.rayClusterConfig.{path}" for path in _RAY_CLUSTER),
    ("ray.io", "RayCronJob"): (
        *(f"spec.jobTemplate.rayClusterSpec.{path}" for path in _RAY_CLUSTER),
        "spec.jobTemplate.submitterPodTemplate",
    ),
}
# Where the names of claims are that operators add to the volumes of pods.
_CLAIMS: dict[tuple[str, str], tuple[str, ...]] = {
    ("jobset.x-k8s.io", "JobSet"): ("spec.volumeClaimPolicies.*.templates.*.metadata.name",),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        "spec.leaderWorkerTemplate.volumeClaimTemplates.*.metadata.name",
    ),
}


@cache
def list_template_paths(group: str, kind: str) -> tuple[tuple[Step, ...], ...]:
    """Return the paths of the pod templates in objects of a kind; an empty path is the object itself."""
    return tuple(map(parse_dotted, _PATHS.get((group, kind), ())))


@cache
def list_claim_paths(group: str, kind: str) -> tuple[tuple[Step, ...], ...]:
    """Return the paths of the names of volumes that the operator of a kind adds to its pods."""
    return tuple(map(parse_dotted, _CLAIMS.get((group, kind), ())))
