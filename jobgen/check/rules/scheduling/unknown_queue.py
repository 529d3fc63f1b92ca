"""Queues that the cluster does not have."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.kueue import can_be_queued, get_queue
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.suggest import did_you_mean


@rule("manifest", ERROR)
def unknown_queue(manifest: Manifest) -> Iterator[Violation]:
    """A queue that the cluster does not have.

    The job stays suspended until its queue admits it, and a missing queue never does.

    Use one of the queues that the overlay declares under `cluster.queues`, or declare the queue there.
    """
    queues = manifest.cluster.queues
    if not queues or not can_be_queued(manifest):
        return
    queue = get_queue(manifest)
    if queue is not None and as_text(queue) not in queues:
        hint = did_you_mean(as_text(queue), list(queues))
        yield Violation(queue, f"the cluster declares no queue `{as_text(queue)}`, so the job never starts{hint}")
