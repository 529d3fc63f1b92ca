"""A job between two schedulers that both hold it back."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Fault, rule
from jobgen.k8s.kueue import kueue_queue
from jobgen.k8s.objects import Manifest, at, text


@rule("job", WARNING)
def two_schedulers(manifest: Manifest) -> Iterator[Fault]:
    """A job in a queue of Kueue and in one of Volcano.

    Each keeps its own books: what Kueue has admitted can wait in Volcano's queue while it holds its quota, and GPUs
    that are free in one are taken in the other. Leave the queueing to one of them.
    """
    queue = kueue_queue(manifest)
    if queue is None:
        return
    other = at(manifest.run_policy, "schedulingPolicy", "queue")
    if text(other):
        message = f"the job waits in Volcano's queue `{text(other)}` and in Kueue's `{text(queue)}`; leave one out"
        yield Fault(other, message, ((queue, "Kueue's queue"),))
        return
    for role in manifest.roles:
        name = role.pod.spec.get("schedulerName")
        if text(name) == "volcano":
            message = f"Kueue admits the job to `{text(queue)}`, and then Volcano queues its pods; leave one out"
            yield Fault(name, message, ((queue, "Kueue's queue"),))
            return
