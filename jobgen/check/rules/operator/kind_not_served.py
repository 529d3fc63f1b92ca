"""Kinds that the cluster does not serve."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import is_operator_since

_MPI_JOBS = {
    "mpi-operator": "use `platform: mpi-operator`, or `apiVersion: kubeflow.org/v2beta1` in a manifest",
    "training-operator": "use `platform: kubeflow`, or `apiVersion: kubeflow.org/v1` in a manifest",
}


@rule("job", ERROR)
def kind_not_served(manifest: Manifest) -> Iterator[Violation]:
    """A kind that the declared operator does not serve yet, or that another operator serves in its place.

    The API server rejects objects of unknown kinds. JAXJob was added in training-operator 1.9, PaddleJob in 1.6. An
    MPIJob is either `v1` of training-operator or `v2beta1` of mpi-operator, depending on what the cluster declares.

    Update the operator, or use a kind and version that it serves.
    """
    kind, cluster = manifest.kind, manifest.cluster
    assert kind is not None
    if not is_operator_since(manifest, kind.versions.since):
        since, declared = kind.versions.since, manifest.operator_version
        message = f"{kind.name} was added in {kind.operator} {since}, but this cluster has {declared}"
        yield Violation(manifest.object["kind"], f"{message}; update the operator or use another kind")
    other_operator = kind.requirements.conflicts_with
    if not other_operator:
        return
    platforms = cluster.list_platforms()
    mine = kind.operator in cluster.operators or kind.operator in platforms
    is_declared = other_operator in cluster.operators or other_operator in platforms
    if (other_operator in platforms and kind.platform not in platforms) or (is_declared and not mine):
        message = f"this cluster runs MPIJobs with {other_operator}, not with {kind.operator}"
        advice = _MPI_JOBS.get(other_operator, "use its `apiVersion`")
        yield Violation(manifest.object["apiVersion"], f"{message}; {advice}")
