"""A finalizer that comes back with each sync."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest, as_list, as_text


@rule("manifest", WARNING)
def finalizer_in_git(manifest: Manifest) -> Iterator[Violation]:
    """An object in Git with a finalizer.

    Finalizers are set by the controller that takes them off again; one from Git comes back with each sync, and where
    its controller is missing the object can never be deleted. Take it out of the manifest. Argo CD's own are fine.
    """
    for name in as_list(manifest.metadata.get("finalizers")):
        if "argocd.argoproj.io" not in as_text(name):
            yield Violation(name, f"`{as_text(name)}` keeps the object from being deleted; leave it to its controller")
