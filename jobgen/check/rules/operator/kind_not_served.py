"""A kind that the cluster does not know."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import is_operator_since


@rule("job", ERROR)
def kind_not_served(manifest: Manifest) -> Iterator[Violation]:
    """A kind that the declared operator does not serve yet, or that another operator has in its place.

    The API server does not know such objects, and refuses them. JAXJob came with training-operator 1.9, PaddleJob with
    1.6; an MPIJob is either the training-operator's `v1` or the mpi-operator's `v2beta1`, by what the cluster declares.
    """
    kind, cluster = manifest.kind, manifest.cluster
    assert kind is not None
    if not is_operator_since(manifest, kind.versions.since):
        since, declared = kind.versions.since, manifest.operator_version
        message = f"{kind.name} came with {kind.operator} {since}, and this cluster has {declared}"
        yield Violation(manifest.object["kind"], message)
    rival = kind.requirements.rival
    if not rival:
        return
    mine = kind.operator in cluster.operators or cluster.platform == kind.operator
    other = rival in cluster.operators or cluster.platform == rival
    if cluster.platform == rival or (other and not mine):
        message = f"this cluster's MPIJob is that of {rival}; this one is of {kind.operator}"
        yield Violation(manifest.object["apiVersion"], message)
