"""A queue that a kind's jobs never wait in."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import QUEUE_LABEL, get_kueue_queue, is_mpi_v1
from jobgen.k8s.objects import Manifest
from jobgen.spec.kinds import version

_SUSPENDS_SINCE = "1.7.0"


@rule("job", WARNING)
def queue_without_effect(manifest: Manifest) -> Iterator[Violation]:
    """A label of Kueue on a job that Kueue cannot manage, such as an MPIJob of `kubeflow.org/v1`.

    Kueue never learnt these kinds, or the operator is too old to hold a job back (before training-operator 1.7): the
    job starts at once and past every quota. Use a kind that Kueue manages: for MPI, `kubeflow.org/v2beta1` or a
    TrainJob.
    """
    queue = get_kueue_queue(manifest)
    kind = manifest.kind
    if queue is None or kind is None:
        return
    if is_mpi_v1(manifest):
        yield Violation(queue, "Kueue manages MPIJobs of `kubeflow.org/v2beta1` alone: this one runs without a quota")
    elif kind.platform == "tensorstack":
        yield Violation(queue, f"Kueue does not manage a {kind.name}; `{QUEUE_LABEL}` has no effect")
    elif kind.operator == "training-operator" and _is_before(manifest.operator_version, _SUSPENDS_SINCE):
        message = f"training-operator {manifest.operator_version} cannot hold a job back, as Kueue needs"
        yield Violation(queue, f"{message}; use {_SUSPENDS_SINCE} or later")


def _is_before(declared: str, since: str) -> bool:
    return bool(declared) and version(declared) < version(since)
