"""Jobs queued by both Kueue and Volcano."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import get_kueue_queue
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Manifest


@rule("job", WARNING)
def kueue_and_volcano_queues(manifest: Manifest) -> Iterator[Violation]:
    """A job that is queued by both Kueue and Volcano.

    Each counts quota separately: a job that Kueue admitted can wait in Volcano's queue while it holds its quota, and
    GPUs that are free in one are taken in the other.

    Use only one of them for queueing.
    """
    queue = get_kueue_queue(manifest)
    if queue is None:
        return
    other = get_path(manifest.run_policy, "schedulingPolicy", "queue")
    if as_text(other):
        message = (
            f"the job is in Volcano's queue `{as_text(other)}` and in Kueue's queue `{as_text(queue)}`; remove one"
        )
        yield Violation(other, message, ((queue, "Kueue's queue"),))
        return
    for role in manifest.roles:
        name = role.pod.spec.get("schedulerName")
        if as_text(name) == "volcano":
            message = f"Kueue queues the job in `{as_text(queue)}`, and Volcano then queues its pods; use only one"
            yield Violation(name, message, ((queue, "Kueue's queue"),))
            return
