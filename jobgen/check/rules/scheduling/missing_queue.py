"""A job beside the queues of its cluster."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import can_be_queued, get_queue
from jobgen.k8s.objects import Manifest, as_text, get_path


@rule("job", WARNING)
def missing_queue(manifest: Manifest) -> Iterator[Violation]:
    """A job with GPUs that names no queue, in a cluster that declares queues.

    Nobody counts its GPUs against a quota: it takes what queued jobs have been promised, or it is never admitted where
    every job must be in a queue. Name one with `queue`, or with the label `kueue.x-k8s.io/queue-name`.
    """
    queues = manifest.cluster.queues
    if not queues or not can_be_queued(manifest) or get_queue(manifest) is not None or not manifest.gpus:
        return
    # Volcano has a field of its own, KAI, Run:ai and their like a label.
    elsewhere = as_text(get_path(manifest.run_policy, "schedulingPolicy", "queue"))
    if not elsewhere and not any("queue" in key for key in manifest.labels):
        known = ", ".join(f"`{name}`" for name in sorted(queues)[:5])
        message = f"the job takes GPUs past the cluster's queues; name one of {known}"
        yield Violation(manifest.metadata.get("name", manifest.metadata.get("generateName")), message)
