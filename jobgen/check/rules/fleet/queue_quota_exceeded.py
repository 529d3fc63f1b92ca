"""Jobs larger than the quota of their queue."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.kueue import can_be_queued, get_queue
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import count_gpus
from jobgen.model.data import Node
from jobgen.model.finding import pluralize


@rule("manifest", ERROR)
def queue_quota_exceeded(manifest: Manifest) -> Iterator[Violation]:
    """A job that requests more GPUs than its queue can ever provide.

    The job waits in the queue forever, without an error.

    Request fewer GPUs, use a larger queue, or correct the quota that the overlay declares under `cluster.queues`.
    """
    queues = manifest.cluster.queues
    if not queues or not can_be_queued(manifest):
        return
    queue: Node = get_queue(manifest)
    quota = queues.get(as_text(queue), {}).get("gpus")
    gpus = count_gpus(manifest) if quota is not None else 0
    if quota is not None and gpus > quota:
        message = f"the job requests {pluralize(gpus, 'GPU')}, but queue `{as_text(queue)}` has only {quota}"
        asked = [each for role in manifest.roles if role.gpus for each in role.compared_count]
        asked += [(each.device_node, "") for role in manifest.roles for each in role.pod.containers if each.gpus]
        advice = "so it is never admitted; request fewer or use a larger queue"
        yield Violation(queue, f"{message}, {advice}", tuple(asked))
