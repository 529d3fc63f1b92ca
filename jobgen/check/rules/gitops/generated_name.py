"""Generated names in manifests that are applied."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.argocd_annotations import is_hook
from jobgen.k8s.objects import Manifest

_APPLIERS = {"argocd": "Argo CD", "flux": "Flux", "kubectl": "`kubectl apply`"}


@rule("manifest", ERROR)
def generated_name(manifest: Manifest) -> Iterator[Violation]:
    """A `generateName` in a manifest that is applied.

    Applying needs a name to find the object again. `kubectl apply`, Argo CD and Flux reject an object without one; only
    Argo CD hooks can have a generated name.

    Write a `name`.
    """
    applier = _APPLIERS.get(manifest.cluster.gitops)
    if applier is None or "generateName" not in manifest.metadata or manifest.name:
        return
    if applier != "Argo CD" or not is_hook(manifest):
        key = next(key for key in manifest.metadata if key == "generateName")
        yield Violation(key, f"{applier} rejects an object without a name; use `name` instead of `generateName`")
