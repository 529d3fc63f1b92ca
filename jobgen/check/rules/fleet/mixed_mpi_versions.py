"""MPIJobs of two operators in one environment."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Fact, FactViolation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.spec.overlay import Cluster


def collect(manifest: Manifest) -> Iterator[Fact]:
    """Yield the apiVersion of an MPIJob."""
    version = as_text(manifest.object.get("apiVersion"))
    if version in ("kubeflow.org/v1", "kubeflow.org/v2beta1"):
        yield Fact(version, ("apiVersion",))


@rule("fleet", ERROR, kinds=("MPIJob",), collect=collect)
def mixed_mpi_versions(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """MPIJobs of both `kubeflow.org/v1` and `kubeflow.org/v2beta1` in one environment.

    training-operator and mpi-operator both name their CRD `mpijobs.kubeflow.org`, and a cluster holds only one CRD of
    that name. It serves one of the two versions and rejects the other.

    Move all jobs to one version.
    """
    versions = sorted({fact.value for fact in facts})
    if len(versions) < 2:
        return
    kept = versions[1] if cluster.platform == "mpi-operator" else _most_common_version(facts)
    other = next(fact for fact in facts if fact.value == kept)
    for fact in facts:
        if fact.value != kept:
            message = f"a cluster serves MPIJob as `{fact.value}` or as `{kept}`, never both; use `{kept}`"
            yield FactViolation(fact, message, ((other, f"uses `{kept}`"),))


def _most_common_version(facts: list[Fact]) -> str:
    """Return the version that most jobs use, the first one on a tie."""
    versions = [fact.value for fact in facts]
    return str(max(versions, key=versions.count))
