"""Queue labels on jobs that Kueue cannot manage."""

from collections.abc import Iterator

from jobgen.check.original_messages import original_message
from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import QUEUE_LABEL, get_kueue_queue, is_mpi_v1
from jobgen.k8s.objects import Manifest
from jobgen.spec.kinds import parse_version

_SUSPENDS_SINCE = "1.7.0"


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
    if kind is None:
        if (manifest.group, manifest.kind_name) == ("batch", "CronJob"):
            yield Violation(queue, "Kueue manages the Jobs of a CronJob; move the label to `jobTemplate`")
        return
    if is_mpi_v1(manifest):
        yield Violation(queue, "Kueue manages MPIJob only as `kubeflow.org/v2beta1`; use that version")
    elif kind.platform == "tensorstack":
        yield Violation(queue, f"Kueue does not manage {kind.name}, so `{QUEUE_LABEL}` has no effect; remove it")
    elif kind.operator == "training-operator" and _is_before(manifest.operator_version, _SUSPENDS_SINCE):
        message = f"training-operator {manifest.operator_version} cannot suspend jobs, which Kueue requires"
        evidence = original_message("ineffective-queue-label", manifest.operator_version, _SUSPENDS_SINCE)
        yield Violation(queue, f"{message}; use {_SUSPENDS_SINCE} or later", evidence=evidence)


def _is_before(declared: str, since: str) -> bool:
    return bool(declared) and parse_version(declared) < parse_version(since)
