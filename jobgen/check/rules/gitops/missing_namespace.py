"""Jobs without a namespace."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.argocd_annotations import is_training_job
from jobgen.k8s.objects import Manifest

_FALLBACKS = {
    "argocd": "Argo CD uses the namespace of the app",
    "flux": "Flux uses the namespace of the Kustomization, if it has one",
    "kubectl": "`kubectl` uses the namespace of the current context",
}


@rule("job", INFO)
def missing_namespace(manifest: Manifest) -> Iterator[Violation]:
    """A job without a namespace, in a cluster that is deployed from Git.

    Something else then decides the namespace: the Argo CD app, the Flux Kustomization, or the kubectl context.

    Set the namespace in the job, or once for all jobs in the overlay.
    """
    fallback = _FALLBACKS.get(manifest.cluster.gitops)
    if fallback is not None and not manifest.namespace and is_training_job(manifest):
        name = manifest.metadata.get("name", manifest.metadata.get("generateName"))
        yield Violation(name, f"the job has no namespace, so {fallback}; set one")
