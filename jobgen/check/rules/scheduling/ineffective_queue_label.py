"""Queue labels on jobs that Kueue cannot manage."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.kueue import QUEUE_LABEL, get_kueue_queue, is_mpi_v1
from jobgen.k8s.kueue_integrations import explain_conflict, explain_declared
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.spec.kinds import parse_version

_SUSPENDS_SINCE = "1.7.0"
_WITHOUT_KUEUE = {
    ("batch.volcano.sh", "CronJob"): "a CronJob of Volcano",
    ("batch.volcano.sh", "Job"): "a Job of Volcano",
    ("ray.io", "RayCronJob"): "a RayCronJob, nor does KubeRay copy its labels to its RayJobs",
}


@rule("manifest", WARNING)
def ineffective_queue_label(manifest: Manifest) -> Iterator[Violation]:
    """A Kueue label on a job that Kueue cannot manage, such as an MPIJob of `kubeflow.org/v1`.

    Kueue does not support these kinds, or the operator is too old to suspend a job (before training-operator 1.7). The
    job is unmanaged: it starts at once, without quota.

    This is an error if the cluster declares the version of Kueue, or its `frameworks`, and this Kueue does not manage
    the kind: since 0.19, PyTorchJob, TFJob, XGBoostJob, PaddleJob and JAXJob, unless `cluster.kueue.frameworks` lists
    them. It is also an error if the declared versions do not work together: Kueue 0.17 and later needs Trainer 2.2 or
    later to start a TrainJob.

    Use a kind that Kueue manages; for MPI, `kubeflow.org/v2beta1` or a TrainJob. Set the label of a CronJob in the
    `metadata` of its `jobTemplate`, so each Job has it.
    """
    queue = get_kueue_queue(manifest)
    kind = manifest.kind
    name = (manifest.group, manifest.kind_name)
    if queue is None:
        return
    unmanaged = explain_declared(as_text(manifest.object.get("apiVersion")), manifest.kind_name, manifest.cluster)
    conflict = explain_conflict(manifest.kind_name, manifest.cluster)
    if unmanaged is not None:
        yield Violation(queue, f"the job is unmanaged: {'; '.join(unmanaged)}", severity=ERROR)
    elif conflict is not None:
        yield Violation(queue, f"the job is never admitted: {'; '.join(conflict)}", severity=ERROR)
    elif name == ("batch", "CronJob"):
        yield Violation(queue, "Kueue manages the Jobs of a CronJob; move the label to `jobTemplate`")
    elif name in _WITHOUT_KUEUE:
        yield Violation(queue, f"Kueue does not manage {_WITHOUT_KUEUE[name]}; remove the label `{QUEUE_LABEL}`")
    elif is_mpi_v1(manifest):
        yield Violation(queue, "Kueue manages MPIJob only as `kubeflow.org/v2beta1`; use that version")
    elif kind is not None and kind.platform == "tensorstack":
        yield Violation(queue, f"Kueue does not manage {kind.name}, so `{QUEUE_LABEL}` has no effect; remove it")
    elif kind is not None and kind.operator == "training-operator":
        declared = manifest.operator_version
        if declared and parse_version(declared) < parse_version(_SUSPENDS_SINCE):
            message = f"training-operator {declared} cannot suspend jobs, which Kueue requires"
            yield Violation(queue, f"{message}; use {_SUSPENDS_SINCE} or later")
