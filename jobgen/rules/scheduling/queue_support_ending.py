"""A kind that Kueue is about to forget."""

from collections.abc import Iterator

from jobgen.queues import kueue_queue
from jobgen.rules import INFO, Fault, rule
from jobgen.view import Manifest


@rule("job", INFO, kinds=("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob"))
def queue_support_ending(manifest: Manifest) -> Iterator[Fault]:
    """A queued job of a kind that Kueue gives up.

    Kueue calls its support for these kinds of `kubeflow.org/v1` deprecated and means to drop it with 0.20; without it
    the jobs start at once. Plan to move to TrainJobs, and look at this before Kueue is updated.
    """
    queue = kueue_queue(manifest)
    if queue is not None and manifest.kind is not None and manifest.kind.operator == "training-operator":
        yield Fault(queue, f"Kueue means to drop {manifest.kind_name} with 0.20; a TrainJob will still be queued")
