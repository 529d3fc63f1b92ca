"""Two operators' MPIJobs in one cluster."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Fact, Violation, rule
from jobgen.k8s.objects import Manifest, as_text
from jobgen.spec.overlay import Cluster


def collect(manifest: Manifest) -> Iterator[Fact]:
    """The version of an MPIJob."""
    version = as_text(manifest.object.get("apiVersion"))
    if version in ("kubeflow.org/v1", "kubeflow.org/v2beta1"):
        yield Fact(version, ("apiVersion",))


@rule("fleet", ERROR, kinds=("MPIJob",), collect=collect)
def mixed_mpi_versions(rows: list[Fact], cluster: Cluster) -> Iterator[Violation]:
    """MPIJobs of `kubeflow.org/v1` and of `kubeflow.org/v2beta1` in one environment.

    Both operators, training-operator and mpi-operator, call their CRD `mpijobs.kubeflow.org`, and a cluster has it
    once: it serves one of the two versions and refuses the other. Move all jobs to one of them.
    """
    versions = sorted({row.fact for row in rows})
    if len(versions) < 2:
        return
    kept = versions[1] if cluster.platform == "mpi-operator" else _usual(rows)
    other = next(row for row in rows if row.fact == kept)
    for row in rows:
        if row.fact != kept:
            message = f"a cluster serves MPIJob in `{row.fact}` or in `{kept}`, not in both; use `{kept}`"
            yield Violation(row, message, ((other, "the other version"),))


def _usual(rows: list[Fact]) -> str:
    """The version that most jobs have; of equals, the first."""
    versions = [row.fact for row in rows]
    return str(max(versions, key=versions.count))
