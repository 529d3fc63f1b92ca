"""A job without a namespace."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.argocd_annotations import is_training_job
from jobgen.k8s.objects import Manifest

_ELSEWHERE = {
    "argocd": "Argo CD takes the app's",
    "flux": "Flux takes the Kustomization's, if it names one",
    "kubectl": "`kubectl` takes that of whoever runs it",
}


@rule("job", INFO)
def missing_namespace(manifest: Manifest) -> Iterator[Violation]:
    """A job without a namespace, in a cluster that is fed from Git.

    Where it runs is then decided elsewhere: by the app, or by the settings of whoever applies it. Name the namespace
    in the job, or once for all jobs in the overlay.
    """
    elsewhere = _ELSEWHERE.get(manifest.cluster.gitops)
    if elsewhere is not None and not manifest.namespace and is_training_job(manifest):
        name = manifest.metadata.get("name", manifest.metadata.get("generateName"))
        yield Violation(name, f"no namespace is written, and {elsewhere}; name it")
