"""Finalizers in Git."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_text
from jobgen.k8s.objects import Manifest


@rule("manifest", WARNING)
def finalizer_in_git(manifest: Manifest) -> Iterator[Violation]:
    """An object in Git with a finalizer.

    A controller sets and removes its finalizer. A finalizer in Git comes back with each sync, and without its
    controller the object cannot be deleted. Argo CD's own finalizers are not reported.

    Remove the finalizer from the manifest.
    """
    for name in as_list(manifest.metadata.get("finalizers")):
        if "argocd.argoproj.io" not in as_text(name):
            yield Violation(
                name, f"finalizer `{as_text(name)}` can block deletion of the object; remove it, its controller sets it"
            )
