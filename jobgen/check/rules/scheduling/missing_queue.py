"""Jobs without a queue."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import can_be_queued, get_queue
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Manifest


@rule("job", WARNING)
def missing_queue(manifest: Manifest) -> Iterator[Violation]:
    """A job with GPUs that names no queue, in a cluster that declares queues.

    Its GPUs count against no quota: the job takes GPUs that queued jobs were promised, or it is never admitted where
    every job must be in a queue.

    Set `queue`, or the label `kueue.x-k8s.io/queue-name`.
    """
    queues = manifest.cluster.queues
    if not queues or not can_be_queued(manifest) or get_queue(manifest) is not None or not manifest.has_devices:
        return
    # Volcano has its own field; KAI, Run:ai and similar schedulers use a label.
    elsewhere = as_text(get_path(manifest.run_policy, "schedulingPolicy", "queue"))
    if not elsewhere and not any("queue" in key for key in manifest.labels):
        known = ", ".join(f"`{name}`" for name in sorted(queues)[:5])
        wanted = "GPUs" if manifest.gpus else "accelerators"
        message = f"the job requests {wanted} but names no queue; use one of {known}"
        yield Violation(manifest.metadata.get("name", manifest.metadata.get("generateName")), message)
