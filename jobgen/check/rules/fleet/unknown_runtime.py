"""A runtime that is not there."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Fact, Violation, rule
from jobgen.k8s.objects import Manifest, as_mapping, as_text
from jobgen.model.suggest import did_you_mean
from jobgen.spec.overlay import Cluster

_CLUSTER, _OWN = "ClusterTrainingRuntime", "TrainingRuntime"
# What Trainer installs by itself; torchtune's are many.
_SHIPPED = frozenset(
    """torch-distributed torch-distributed-with-cache deepspeed-distributed mlx-distributed jax-distributed
    xgboost-distributed""".split()
)


def collect(manifest: Manifest) -> Iterator[Fact]:
    """Runtimes by kind, namespace and name; and the runtime that a TrainJob asks for."""
    if manifest.kind_name in (_CLUSTER, _OWN):
        own = manifest.namespace if manifest.kind_name == _OWN else ""
        yield Fact((True, manifest.kind_name, own, manifest.name), ("metadata", "name"))
        return
    reference = as_mapping(manifest.spec.get("runtimeRef"))
    name = as_text(reference.get("name"))
    if name:
        kind = as_text(reference.get("kind")) or _CLUSTER
        yield Fact((False, kind, manifest.namespace, name), ("spec", "runtimeRef", "name"))


@rule("fleet", WARNING, kinds=("TrainJob", _CLUSTER, _OWN), collect=collect)
def unknown_runtime(rows: list[Fact], cluster: Cluster) -> Iterator[Violation]:
    """A TrainJob whose runtime is neither in the repository nor shipped with Trainer.

    Trainer's webhook refuses a TrainJob whose runtime does not exist. It is looked for only in a repository that holds
    runtimes of the kind; others may live in the cluster. A TrainingRuntime must be in the namespace of the job.
    """
    del cluster
    there = {row.fact[1:]: row for row in rows if row.fact[0]}
    kinds = {kind for kind, _, _ in there}
    for row in rows:
        known, kind, namespace, name = row.fact
        wanted = (kind, namespace if kind == _OWN else "", name)
        if known or wanted in there or (kind == _CLUSTER and (name in _SHIPPED or name.startswith("torchtune-"))):
            continue
        other = there.get((_OWN, namespace, name)) if kind == _CLUSTER else there.get((_CLUSTER, "", name))
        if other is not None:
            message = f"`{name}` is a {other.fact[1]}; say `kind: {other.fact[1]}` in `runtimeRef`"
            yield Violation(row, message, ((other, "the runtime"),))
        elif kind in kinds:
            hint = did_you_mean(name, [other_name for _, _, other_name in there])
            yield Violation(row, f"the repository has no {kind} `{name}`{hint}")
