"""Misspelled queue labels."""

import re
from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import QUEUE_LABEL, get_kueue_queue
from jobgen.k8s.objects import Manifest
from jobgen.model.finding import FixStep
from jobgen.model.lazy_re import lazy_pattern

# Common misspellings of the domain, then `queue`, optionally with `local` before or `name` after it.
_MISSPELLED = lazy_pattern(
    r"(?:kueue\.(?:x-k8s\.io|k8s\.io|x\.k8s\.io|x-k8s|sigs\.k8s\.io|io)|x-k8s\.io)/(?:local[-_]?)?queue(?:[-_.]?name)?\Z",
    re.IGNORECASE,
)
# The label itself, and one that Kueue sets on pods.
_OTHERS = frozenset(("kueue.x-k8s.io/local-queue-name", QUEUE_LABEL))


@rule("manifest", WARNING)
def queue_label_typo(manifest: Manifest) -> Iterator[Violation]:
    """A label that resembles Kueue's `kueue.x-k8s.io/queue-name`.

    Kueue ignores it, so the job starts at once, without quota.

    Write `kueue.x-k8s.io/queue-name`.
    """
    labels = manifest.metadata.get("labels")
    for key in labels if isinstance(labels, dict) else ():
        if (
            "queue" in key.lower()
            and key not in _OTHERS
            and _MISSPELLED.match(key)
            and get_kueue_queue(manifest) is None
        ):
            message = f"Kueue does not read the label `{key}`; use `{QUEUE_LABEL}`"
            yield Violation(key, message, fix_steps=(FixStep("rename", key, QUEUE_LABEL),))
