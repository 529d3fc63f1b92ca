"""Pod sets of Jobs, of JobSets, and of kinds with a map of replicas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.pod_sets.raw import RawPodSet, count_job_pods, get_spec, make_pod_set, read_count
from jobgen.features.kueue.pod_sets.topology_request import DOMAIN, Gates, Labels, parse_integer

MAIN: Final = "main"
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
JOB_INDEX: Final = "jobset.sigs.k8s.io/job-index"
REPLICA_INDEX: Final = "training.kubeflow.org/replica-index"
_MIN_PARALLELISM = DOMAIN + "job-min-parallelism"
# Labels that the Job controller sets.
_MANAGED_LABELS = frozenset(("job-name", "controller-uid", "batch.kubernetes.io/controller-uid"))

REPLICA_TYPES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "JAXJob": ("jaxReplicaSpecs", ("Worker",)),
    "MPIJob": ("mpiReplicaSpecs", ("Launcher", "Worker")),
    "PaddleJob": ("paddleReplicaSpecs", ("Master", "Worker")),
    "PyTorchJob": ("pytorchReplicaSpecs", ("Master", "Worker")),
    "TFJob": ("tfReplicaSpecs", ("Chief", "Master", "PS", "Worker", "Evaluator")),
    "XGBoostJob": ("xgbReplicaSpecs", ("Master", "Worker")),
}
"""The field with the replicas of a kind, and their types in the order of Kueue."""


def list_job(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod set of a Job."""
    spec = get_spec(obj)
    made = make_pod_set(MAIN, count_job_pods(spec), spec.get("template"), gates, Labels(COMPLETION_INDEX))
    made["template"] = _remove_managed_labels(made["template"])
    annotations = as_mapping(as_mapping(obj.get("metadata")).get("annotations"))
    least = parse_integer(annotations.get(_MIN_PARALLELISM))
    return [made if least is None else {**made, "minCount": least}]


def _remove_managed_labels(template: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = as_mapping(template.get("metadata"))
    labels = as_mapping(metadata.get("labels"))
    if not labels.keys() & _MANAGED_LABELS:
        return template
    kept = {name: value for name, value in labels.items() if name not in _MANAGED_LABELS}
    rest = {name: value for name, value in metadata.items() if name != "labels"}
    return {**template, "metadata": {**rest, "labels": kept} if kept else rest}


def list_job_set(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod sets of a JobSet: one for each replicated job."""
    found = []
    for job in map(as_mapping, as_list(get_spec(obj).get("replicatedJobs"))):
        replicas, spec = read_count(job.get("replicas")), get_spec(job.get("template"))
        labels = Labels(COMPLETION_INDEX, JOB_INDEX, replicas)
        count = replicas * count_job_pods(spec)
        found.append(make_pod_set(job.get("name"), count, spec.get("template"), gates, labels))
    return found


def list_replica_types(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod sets of a kind with a map of replicas; types that are missing are skipped."""
    field, types = REPLICA_TYPES[str(obj.get("kind"))]
    replicas = as_mapping(get_spec(obj).get(field))
    return [
        make_pod_set(name, read_count(each.get("replicas")), each.get("template"), gates, Labels(REPLICA_INDEX))
        for name in types
        if isinstance(each := replicas.get(name), dict)
    ]
