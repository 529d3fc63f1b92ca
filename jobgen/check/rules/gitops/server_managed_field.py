"""Fields that only the cluster sets."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest
from jobgen.model.finding import FixStep

SERVER_FIELDS = frozenset(
    ("creationTimestamp", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@rule("manifest", WARNING)
def server_managed_field(manifest: Manifest) -> Iterator[Violation]:
    """A field that only the cluster sets, in a manifest that was exported from one.

    The API server drops or rejects the field, and a comparison of Git with the cluster always shows a difference.

    Remove the field from the manifest.
    """
    if "status" in manifest.object:
        yield from (_report(key) for key in manifest.object if key == "status")
    for key in manifest.metadata:
        if key in SERVER_FIELDS:
            yield _report(key)
    annotations = manifest.metadata.get("annotations")
    if isinstance(annotations, dict) and _LAST_APPLIED in annotations:
        yield from (_report(key) for key in annotations if key == _LAST_APPLIED)


def _report(key: str) -> Violation:
    message = f"`{key}` is set by the cluster; remove it from the manifest"
    return Violation(key, message, fix_steps=(FixStep("remove", key),))
