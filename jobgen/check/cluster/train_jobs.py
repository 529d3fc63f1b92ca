"""The pods of a TrainJob: those of its runtime, with the nodes and resources that the job sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import is_set, iter_mappings
from jobgen.check.cluster.state import ClusterState
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.k8s.pod_counts import count_job_pods, count_pods
from jobgen.model.data import Node, value_of

_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
_CONTAINER = "node"


def find_runtime(manifest: Manifest, state: ClusterState) -> Mapping[str, Node]:
    """Return the runtime that a TrainJob refers to; empty if it is not known, or if the object is no TrainJob."""
    if manifest.kind_name != "TrainJob":
        return {}
    reference = as_mapping(manifest.spec.get("runtimeRef"))
    kind = as_text(reference.get("kind")) or "ClusterTrainingRuntime"
    namespace = manifest.namespace if kind == "TrainingRuntime" else ""
    return state.runtimes.get((kind, namespace, as_text(reference.get("name"))), {})


def count_created_pods(manifest: Manifest, state: ClusterState) -> Iterator[tuple[Pod, int]]:
    """Yield the pod templates of an object, each with its number of pods; those of a TrainJob from its runtime."""
    runtime = find_runtime(manifest, state)
    if not runtime:
        yield from count_pods(manifest)
        return
    suspended = value_of(manifest.spec.get("suspend")) is True
    for item in iter_mappings(get_path(runtime, "spec", "template", "spec", "replicatedJobs")):
        job = as_mapping(get_path(item, "template", "spec"))
        template = as_mapping(job.get("template"))
        replicas = as_integer(item.get("replicas"))
        count = (1 if replicas is None else max(replicas, 0)) * count_job_pods(job)
        if as_text(get_path(item, "template", "metadata", "labels", _STEP)) == "trainer":
            count = _count_nodes(manifest, runtime)
            template = _set_resources(template, get_path(manifest.spec, "trainer", "resourcesPerNode"))
        yield Pod(template, manifest), 0 if suspended else count


def _count_nodes(manifest: Manifest, runtime: Mapping[str, Node]) -> int:
    own = as_integer(get_path(manifest.spec, "trainer", "numNodes"))
    shared = as_integer(get_path(runtime, "spec", "mlPolicy", "numNodes"))
    return max(own if own is not None else 1 if shared is None else shared, 0)


def _set_resources(template: Mapping[str, Node], resources: Node) -> Mapping[str, Node]:
    """Give the container that trains the resources of the job."""
    if not is_set(resources):
        return template
    spec = as_mapping(template.get("spec"))
    containers: list[Node] = [
        {**each, "resources": resources} if as_text(each.get("name")) == _CONTAINER else each
        for each in iter_mappings(spec.get("containers"))
    ]
    return {**template, "spec": {**spec, "containers": containers}}
