"""A queue's name that no queue can have."""

from collections.abc import Iterator

from jobgen.pattern import pattern
from jobgen.queues import kueue_queue
from jobgen.rules import ERROR, Fault, rule
from jobgen.view import Manifest, text

_LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = pattern(rf"{_LABEL}(?:\.{_LABEL})*\Z")


@rule("manifest", ERROR)
def bad_queue_name(manifest: Manifest) -> Iterator[Fault]:
    """A name in the label `kueue.x-k8s.io/queue-name` that no queue can have.

    Kueue's webhook refuses the job: a queue is named like any object, in lower-case letters, digits, `-` and `.`.
    """
    queue = kueue_queue(manifest)
    if queue is not None and not _SUBDOMAIN.match(text(queue)):
        message = f"no queue can be called `{text(queue)}`; use lower-case letters, digits, `-` and `.`"
        yield Fault(queue, message)
