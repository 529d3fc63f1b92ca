"""Owner references in Git."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_list
from jobgen.k8s.objects import Manifest
from jobgen.model.finding import FixStep


@rule("manifest", WARNING)
def owner_references_in_git(manifest: Manifest) -> Iterator[Violation]:
    """An object in Git with `ownerReferences`.

    An owner reference contains the `uid` that one cluster assigned to the owner. Where no such object exists, the
    garbage collector deletes this object as soon as it is created.

    Remove `ownerReferences` from the manifest.
    """
    if as_list(manifest.metadata.get("ownerReferences")):
        key = next(key for key in manifest.metadata if key == "ownerReferences")
        message = f"`{key}` makes the cluster delete the object if the owner does not exist there; remove it"
        yield Violation(key, message, fix_steps=(FixStep("remove", key),), safe=False)
