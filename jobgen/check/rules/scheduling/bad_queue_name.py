"""Invalid queue names."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.kueue import get_kueue_queue
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.lazy_re import lazy_pattern

_LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = lazy_pattern(rf"{_LABEL}(?:\.{_LABEL})*\Z")


@rule("manifest", ERROR)
def bad_queue_name(manifest: Manifest) -> Iterator[Violation]:
    """A queue name in the label `kueue.x-k8s.io/queue-name` that no queue can have.

    Kueue's webhook rejects the job. A queue name follows the rules of object names.

    Use lower-case letters, digits, `-` and `.`.
    """
    queue = get_kueue_queue(manifest)
    if queue is not None and not _SUBDOMAIN.match(as_text(queue)):
        message = f"`{as_text(queue)}` is not a valid queue name; use lower-case letters, digits, `-` and `.`"
        yield Violation(queue, message)
