"""A finalizer that comes back with each sync."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Fault, rule
from jobgen.k8s.objects import Manifest, items, text


@rule("manifest", WARNING)
def finalizer_in_git(manifest: Manifest) -> Iterator[Fault]:
    """An object in Git with a finalizer.

    Finalizers are set by the controller that takes them off again; one from Git comes back with each sync, and where
    its controller is missing the object can never be deleted. Take it out of the manifest. Argo CD's own are fine.
    """
    for name in items(manifest.metadata.get("finalizers")):
        if "argocd.argoproj.io" not in text(name):
            yield Fault(name, f"`{text(name)}` keeps the object from being deleted; leave it to its controller")
