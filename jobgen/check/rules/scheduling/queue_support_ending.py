"""Kinds that Kueue stops supporting."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Fact, FactViolation, rule
from jobgen.k8s.kueue import QUEUE_LABEL, get_kueue_queue
from jobgen.k8s.kueue_integrations import explain_declared
from jobgen.k8s.objects import Manifest
from jobgen.spec.overlay import Cluster

# Trainer has no runtime for TensorFlow and Paddle.
_SUCCESSORS = {"TFJob": "JobSet", "PaddleJob": "JobSet"}


def _collect(manifest: Manifest) -> Iterator[Fact]:
    """Yield the kind of a queued job."""
    if get_kueue_queue(manifest) is not None and manifest.kind is not None:
        yield Fact(manifest.kind_name, ("metadata", "labels", QUEUE_LABEL))


@rule("fleet", INFO, kinds=("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob"), collect=_collect)
def queue_support_ending(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """Queued jobs of a kind whose support in Kueue is deprecated; reported once per kind.

    Kueue deprecates these kinds of `kubeflow.org/v1`, does not manage them by default since 0.19, and plans to remove
    them in 0.20. Without support the jobs are unmanaged: they start at once, without quota. If the cluster declares a
    Kueue that does not manage them, this is `ineffective-queue-label`.

    Plan a migration to TrainJob, or to JobSet for TFJob and PaddleJob, which Trainer does not run. Check this before
    you update Kueue.
    """
    for kind in sorted({fact.value for fact in facts}):
        if explain_declared("kubeflow.org/v1", kind, cluster) is not None:
            # Kueue does not manage it now, which is an error of each job.
            continue
        queued = [fact for fact in facts if fact.value == kind]
        more = f" ({len(queued)} queued jobs affected)" if len(queued) > 1 else ""
        message = (
            f"Kueue plans to remove support for {kind} in 0.20{more}; migrate to {_SUCCESSORS.get(kind, 'TrainJob')}"
        )
        yield FactViolation(queued[0], message)
