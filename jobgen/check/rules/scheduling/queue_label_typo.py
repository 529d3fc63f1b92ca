"""A label that nearly puts a job into a queue."""

import re
from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import QUEUE_LABEL, get_kueue_queue
from jobgen.k8s.objects import Manifest
from jobgen.model.finding import FixStep
from jobgen.model.lazy_re import lazy_pattern

# The domain as people remember it, then `queue`, with `local` before or `name` behind it.
_NEARLY = lazy_pattern(
    r"(?:kueue\.(?:x-k8s\.io|k8s\.io|x\.k8s\.io|x-k8s|sigs\.k8s\.io|io)|x-k8s\.io)/(?:local[-_]?)?queue(?:[-_.]?name)?\Z",
    re.IGNORECASE,
)
# The label itself, and one that Kueue puts on pods.
_OTHERS = frozenset(("kueue.x-k8s.io/local-queue-name", QUEUE_LABEL))


@rule("manifest", WARNING)
def queue_label_typo(manifest: Manifest) -> Iterator[Violation]:
    """A label that looks like Kueue's `kueue.x-k8s.io/queue-name` and is another.

    Kueue does not see it: the job runs at once, past every quota. Write the label as Kueue reads it.
    """
    labels = manifest.metadata.get("labels")
    for key in labels if isinstance(labels, dict) else ():
        if "queue" in key.lower() and key not in _OTHERS and _NEARLY.match(key) and get_kueue_queue(manifest) is None:
            message = f"Kueue does not read the label `{key}`; write `{QUEUE_LABEL}`"
            yield Violation(key, message, fix_steps=(FixStep("rename", key, QUEUE_LABEL),))
