"""A job between two schedulers that both hold it back."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import get_kueue_queue
from jobgen.k8s.objects import Manifest, as_text, get_path


@rule("job", WARNING)
def two_schedulers(manifest: Manifest) -> Iterator[Violation]:
    """A job in a queue of Kueue and in one of Volcano.

    Each keeps its own books: what Kueue has admitted can wait in Volcano's queue while it holds its quota, and GPUs
    that are free in one are taken in the other. Leave the queueing to one of them.
    """
    queue = get_kueue_queue(manifest)
    if queue is None:
        return
    other = get_path(manifest.run_policy, "schedulingPolicy", "queue")
    if as_text(other):
        message = (
            f"the job waits in Volcano's queue `{as_text(other)}` and in Kueue's `{as_text(queue)}`; leave one out"
        )
        yield Violation(other, message, ((queue, "Kueue's queue"),))
        return
    for role in manifest.roles:
        name = role.pod.spec.get("schedulerName")
        if as_text(name) == "volcano":
            message = f"Kueue admits the job to `{as_text(queue)}`, and then Volcano queues its pods; leave one out"
            yield Violation(name, message, ((queue, "Kueue's queue"),))
            return
