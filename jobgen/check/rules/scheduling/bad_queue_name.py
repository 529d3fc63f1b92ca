"""A queue's name that no queue can have."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Fault, rule
from jobgen.k8s.kueue import kueue_queue
from jobgen.k8s.objects import Manifest, text
from jobgen.model.lazy_re import pattern

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
