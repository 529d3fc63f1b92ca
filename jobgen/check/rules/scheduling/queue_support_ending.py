"""A kind that Kueue is about to forget."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Fact, Violation, rule
from jobgen.k8s.kueue import QUEUE_LABEL, get_kueue_queue
from jobgen.k8s.objects import Manifest
from jobgen.spec.overlay import Cluster


def _queued(manifest: Manifest) -> Iterator[Fact]:
    if get_kueue_queue(manifest) is not None and manifest.kind is not None:
        yield Fact(manifest.kind_name, ("metadata", "labels", QUEUE_LABEL))


@rule("fleet", INFO, kinds=("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob"), collect=_queued)
def queue_support_ending(rows: list[Fact], cluster: Cluster) -> Iterator[Violation]:
    """Queued jobs of a kind that Kueue gives up; told once for each kind.

    Kueue calls its support for these kinds of `kubeflow.org/v1` deprecated and means to drop it with 0.20; without it
    the jobs start at once. Plan to move to TrainJobs, and look at this before Kueue is updated.
    """
    for kind in sorted({row.value for row in rows}):
        queued = [row for row in rows if row.value == kind]
        more = f" ({len(queued)} such jobs are queued here)" if len(queued) > 1 else ""
        yield Violation(queued[0], f"Kueue means to drop {kind} with 0.20; a TrainJob will still be queued{more}")
