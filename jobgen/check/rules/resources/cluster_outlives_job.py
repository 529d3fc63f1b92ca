"""Clusters of Ray that stay after their job."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, WARNING, Violation, rule
from jobgen.k8s.kueue import get_kueue_queue
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import value_of
from jobgen.model.suggest import find_key

_JOBS = {"RayCronJob": ("spec", "jobTemplate"), "RayJob": ("spec",)}
_FIELD = "shutdownAfterJobFinishes"
_INTERACTIVE = "InteractiveMode"


@rule("manifest", WARNING, kinds=tuple(_JOBS))
def cluster_outlives_job(manifest: Manifest) -> Iterator[Violation]:
    """A RayJob that does not say whether KubeRay deletes its RayCluster when the job ends.

    The default of `shutdownAfterJobFinishes` is false: the pods keep running after the job, and no other job can use
    their GPUs until somebody deletes the RayJob. Without GPUs or other devices it is an info. A job with
    `clusterSelector` uses a cluster that exists, and is not reported.

    Set `shutdownAfterJobFinishes: true`. To keep the cluster on purpose, set it to false.
    """
    spec = as_mapping(get_path(manifest.object, *_JOBS[manifest.kind_name]))
    cluster = find_key(spec, "rayClusterSpec")
    if manifest.group != "ray.io" or cluster is None or spec.get(_FIELD) is not None or spec.get("clusterSelector"):
        return
    # Other rules report that these need the field; an interactive job ends when its user says so.
    is_required = value_of(spec.get("suspend")) is True or (as_integer(spec.get("ttlSecondsAfterFinished")) or 0) > 0
    is_queued = manifest.kind_name == "RayJob" and get_kueue_queue(manifest) is not None
    if is_required or is_queued or spec.get("deletionStrategy") or as_text(spec.get("submissionMode")) == _INTERACTIVE:
        return
    gpus = any(pod.gpus for pod in manifest.pods)
    devices = gpus or any(any(pod.devices.values()) for pod in manifest.pods)
    what = f"its pods keep their {'GPUs' if gpus else 'devices'}" if devices else "its pods keep running"
    message = f"`{_FIELD}` is not set, so {what} after the job; set it to true"
    yield Violation(cluster, message, severity=None if devices else INFO)
