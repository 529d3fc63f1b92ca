"""Queue labels on jobs that Kueue cannot manage."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import QUEUE_LABEL, get_kueue_queue, is_mpi_v1
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node
from jobgen.model.finding import add_article
from jobgen.spec.kinds import parse_version

_SUSPENDS_SINCE = "1.7.0"
_WITHOUT_KUEUE = {
    ("batch.volcano.sh", "CronJob"): "a CronJob of Volcano",
    ("batch.volcano.sh", "Job"): "a Job of Volcano",
    ("ray.io", "RayCronJob"): "a RayCronJob, nor does KubeRay copy its labels to its RayJobs",
}
# The first version of Kueue that manages a kind.
_MANAGED_SINCE = {
    ("jobset.x-k8s.io", "JobSet"): "0.4.0",
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): "0.11.0",
    ("ray.io", "RayCluster"): "0.6.0",
    ("ray.io", "RayJob"): "0.4.0",
    ("ray.io", "RayService"): "0.17.0",
    ("workload.codeflare.dev", "AppWrapper"): "0.11.0",
}


@rule("manifest", WARNING)
def ineffective_queue_label(manifest: Manifest) -> Iterator[Violation]:
    """A Kueue label on a job that Kueue cannot manage, such as an MPIJob of `kubeflow.org/v1`.

    Kueue does not support these kinds, or the operator is too old to suspend a job (before training-operator 1.7). The
    job starts at once, without quota.

    Use a kind that Kueue manages; for MPI, `kubeflow.org/v2beta1` or a TrainJob. Set the label of a CronJob in the
    `metadata` of its `jobTemplate`, so that each Job has it.
    """
    queue = get_kueue_queue(manifest)
    kind = manifest.kind
    if queue is None:
        return
    if kind is None or (manifest.group, manifest.kind_name) in (*_WITHOUT_KUEUE, *_MANAGED_SINCE):
        yield from _check_other_kind(manifest, queue)
        return
    if is_mpi_v1(manifest):
        yield Violation(queue, "Kueue manages MPIJob only as `kubeflow.org/v2beta1`; use that version")
    elif kind.platform == "tensorstack":
        yield Violation(queue, f"Kueue does not manage {kind.name}, so `{QUEUE_LABEL}` has no effect; remove it")
    elif kind.operator == "training-operator" and _is_before(manifest.operator_version, _SUSPENDS_SINCE):
        message = f"training-operator {manifest.operator_version} cannot suspend jobs, which Kueue requires"
        yield Violation(queue, f"{message}; use {_SUSPENDS_SINCE} or later")


def _check_other_kind(manifest: Manifest, queue: Node) -> Iterator[Violation]:
    """Check an object of a kind that is no kind of the training operators."""
    name = (manifest.group, manifest.kind_name)
    declared = str(manifest.cluster.operators.get("kueue", ""))
    if name == ("batch", "CronJob"):
        yield Violation(queue, "Kueue manages the Jobs of a CronJob; move the label to `jobTemplate`")
    elif name in _WITHOUT_KUEUE:
        yield Violation(queue, f"Kueue does not manage {_WITHOUT_KUEUE[name]}; remove the label `{QUEUE_LABEL}`")
    elif name in _MANAGED_SINCE and _is_before(declared, _MANAGED_SINCE[name]):
        message = f"Kueue {declared} does not manage {add_article(manifest.kind_name)}"
        yield Violation(queue, f"{message}; use {_MANAGED_SINCE[name]} or later")


def _is_before(declared: str, since: str) -> bool:
    return bool(declared) and parse_version(declared) < parse_version(since)
