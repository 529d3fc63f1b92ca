"""Jobs that Kueue can never admit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.objects import Manifest
from jobgen.model.data import untraced

if TYPE_CHECKING:
    from jobgen.features.kueue.queue_state import QueueState


@rule("queue", ERROR)
def inadmissible_job(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """A job that Kueue can never admit, however empty the cluster is.

    The job waits forever, without an error. The rule applies if ClusterQueues are in `jobs/`, in the same file, or in
    the folder `cluster.state`. It compares the workload of the job with its queue: whether the queue exists and admits
    anything, selects the namespace, covers the resources, has a flavor that the pods may run on, and could ever have
    enough quota with all that it may borrow. The message ends with the smallest change that would admit the job. If no
    LocalQueue is among the files, nothing is known of the job's queue, and nothing is reported. A priority class that
    does not exist is reported if other classes of its kind are among the files.

    A job of a kind that Kueue does not manage as `cluster.kueue` declares it is a warning: it starts at once, without
    quota.

    Request less, use another queue, or change the queue.
    """
    plain = untraced(manifest.object)
    obstacle = queues.find_obstacle(plain)
    if obstacle is None:
        return
    from jobgen.features.kueue.queue_state import find_cause, find_obstacle_node

    transformations = queues.known.configuration.resources.transformations
    node, others = find_obstacle_node(manifest.object, plain, obstacle, transformations)
    what = "Kueue does not manage the job" if obstacle.code == "unmanaged" else "the job is never admitted"
    message = f"{what}: {obstacle.message}"
    related = (*others, *find_cause(obstacle, queues.find_cluster_queue(plain), queues))
    severity = WARNING if obstacle.code == "unmanaged" else None
    yield Violation(node, f"{message}; {obstacle.change}" if obstacle.change else message, related, severity)
