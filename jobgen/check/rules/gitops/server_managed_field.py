"""Fields that only the cluster sets."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, WARNING, Violation, rule
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node, value_of
from jobgen.model.finding import FixStep

SERVER_FIELDS = frozenset(
    ("creationTimestamp", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@rule("manifest", WARNING)
def server_managed_field(manifest: Manifest) -> Iterator[Violation]:
    """A field that only the cluster sets, in a manifest that was exported from one.

    The API server drops or rejects the field, and a comparison of Git with the cluster always shows a difference.
    `creationTimestamp: null` and a `status` without values, which code generators write, have no effect and are not
    reported; a `status` with values is dropped, and is an info.

    Remove the field from the manifest.
    """
    if not _is_empty(manifest.object.get("status")):
        yield from (_report(key)._replace(severity=INFO) for key in manifest.object if key == "status")
    for key, value in manifest.metadata.items():
        if key in SERVER_FIELDS and value_of(value) is not None:
            yield _report(key)
    annotations = manifest.metadata.get("annotations")
    if isinstance(annotations, dict) and _LAST_APPLIED in annotations:
        yield from (_report(key) for key in annotations if key == _LAST_APPLIED)


def _is_empty(node: Node) -> bool:
    """Return True if a value holds nothing: neither text nor a number, at any depth."""
    nodes = [node]
    while nodes:
        found = nodes.pop()
        if isinstance(found, dict):
            nodes += found.values()
        elif isinstance(found, list):
            nodes += found
        elif value_of(found):
            return False
    return True


def _report(key: str) -> Violation:
    message = f"`{key}` is set by the cluster; remove it from the manifest"
    return Violation(key, message, fix_steps=(FixStep("remove", key),))
