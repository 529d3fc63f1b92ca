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
    anything, selects the namespace, covers the resources, has a flavor that the pods can run on, and could ever have
    enough quota with all that it can borrow. The message ends with the smallest change that would admit the job. If no
    LocalQueue is among the files, jobgen does not know the job's queue and reports nothing. A priority class that
    does not exist is reported if other classes of its kind are among the files.

    A job with a queue that the declared Kueue does not manage is unmanaged: it starts at once, without quota. This is
    an error if the version of Kueue or its `frameworks` are declared, and a warning if only other parts of
    `cluster.kueue` are.

    Request less, use another queue, or change the queue.
    """
    plain = untraced(manifest.object)
    obstacle = queues.find_obstacle(plain)
    if obstacle is None:
        return
    from jobgen.features.kueue.queue_state import find_cause, find_obstacle_node

    transformations = queues.known.configuration.resources.transformations
    node, others = find_obstacle_node(manifest.object, plain, obstacle, transformations)
    is_unmanaged = obstacle.code == "unmanaged"
    message = f"the job is {'unmanaged' if is_unmanaged else 'never admitted'}: {obstacle.message}"
    related = (*others, *find_cause(obstacle, queues.find_cluster_queue(plain), queues))
    # A job of an existing RayCluster uses the quota of that.
    is_certain = queues.is_declared and "clusterSelector" not in manifest.spec
    severity = WARNING if is_unmanaged and not is_certain else None
    yield Violation(node, f"{message}; {obstacle.change}" if obstacle.change else message, related, severity)
