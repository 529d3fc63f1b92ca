"""A job that is larger than its queue."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.kueue import can_be_queued, get_queue
from jobgen.k8s.objects import Manifest, as_text
from jobgen.model.data import Data


@rule("job", ERROR)
def never_admitted(manifest: Manifest) -> Iterator[Violation]:
    """A job that wants more GPUs than its queue can ever give.

    It waits in the queue for ever, without an error. Ask for fewer GPUs, take a larger queue, or correct what the
    overlay says under `cluster.queues`.
    """
    queues = manifest.cluster.queues
    if not queues or not can_be_queued(manifest):
        return
    queue: Data = get_queue(manifest)
    most = queues.get(as_text(queue), {}).get("gpus")
    if most is not None and manifest.gpus > most:
        message = f"the job wants {manifest.gpus} GPUs, and `{as_text(queue)}` never has more than {most}"
        yield Violation(queue, f"{message}: it waits for ever")
