"""What Kueue reads from labels, as an annotation."""

from collections.abc import Iterator

from jobgen.queues import DOMAIN
from jobgen.rules import WARNING, Fault, rule
from jobgen.view import Manifest

_LABELS = frozenset(DOMAIN + name for name in ("queue-name", "priority-class", "max-exec-time-seconds"))


@rule("manifest", WARNING)
def kueue_label_as_annotation(manifest: Manifest) -> Iterator[Fault]:
    """An annotation that Kueue reads as a label only, such as `kueue.x-k8s.io/queue-name`.

    Kueue passes over it: the job has no queue, no priority or no time limit there. Move it to `metadata.labels`.
    """
    annotations = manifest.metadata.get("annotations")
    for key in annotations if isinstance(annotations, dict) else ():
        if key in _LABELS and key not in manifest.labels:
            yield Fault(key, f"Kueue reads `{key}` from the labels, not from the annotations; move it there")
