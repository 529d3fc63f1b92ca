"""An owner that is another cluster's."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest, as_list
from jobgen.model.finding import FixStep


@rule("manifest", WARNING)
def owner_in_git(manifest: Manifest) -> Iterator[Violation]:
    """An object in Git with `ownerReferences`.

    They name an owner by the `uid` that one cluster gave it. Where no such object lives, the garbage collector deletes
    this one as soon as it is made. Take them out of the manifest.
    """
    if as_list(manifest.metadata.get("ownerReferences")):
        key = next(key for key in manifest.metadata if key == "ownerReferences")
        message = "the object is deleted at once where its owner does not live; take the owners out"
        yield Violation(key, message, fix_steps=(FixStep("remove", key),), safe=False)
