"""Kueue labels written as annotations."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import DOMAIN
from jobgen.k8s.objects import Manifest
from jobgen.model.suggest import suggest_move

_LABELS = frozenset(DOMAIN + name for name in ("queue-name", "priority-class", "max-exec-time-seconds"))


@rule("manifest", WARNING)
def kueue_label_as_annotation(manifest: Manifest) -> Iterator[Violation]:
    """An annotation that Kueue reads only as a label, such as `kueue.x-k8s.io/queue-name`.

    Kueue ignores the annotation, so the job has no queue, priority or time limit.

    Move it to `metadata.labels`.
    """
    annotations = manifest.annotations
    for key in annotations:
        if key in _LABELS and key not in manifest.labels:
            message = f"Kueue reads `{key}` only as a label; move it to the labels"
            fix_steps, safe = suggest_move(key, annotations[key], annotations, "labels", manifest.metadata)
            yield Violation(key, message, fix_steps=fix_steps, safe=safe)
