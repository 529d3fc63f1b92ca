"""A runtime that is not there."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Fault, Row, rule
from jobgen.k8s.objects import Manifest, mapping, text
from jobgen.model.suggest import nearest
from jobgen.spec.overlay import Cluster

_CLUSTER, _OWN = "ClusterTrainingRuntime", "TrainingRuntime"
# What Trainer installs by itself; torchtune's are many.
_SHIPPED = frozenset(
    """torch-distributed torch-distributed-with-cache deepspeed-distributed mlx-distributed jax-distributed
    xgboost-distributed""".split()
)


def gather(manifest: Manifest) -> Iterator[Row]:
    """Runtimes by kind, namespace and name; and the runtime that a TrainJob asks for."""
    if manifest.kind_name in (_CLUSTER, _OWN):
        own = manifest.namespace if manifest.kind_name == _OWN else ""
        yield Row((True, manifest.kind_name, own, manifest.name), ("metadata", "name"))
        return
    reference = mapping(manifest.spec.get("runtimeRef"))
    name = text(reference.get("name"))
    if name:
        kind = text(reference.get("kind")) or _CLUSTER
        yield Row((False, kind, manifest.namespace, name), ("spec", "runtimeRef", "name"))


@rule("fleet", WARNING, kinds=("TrainJob", _CLUSTER, _OWN), gather=gather)
def unknown_runtime(rows: list[Row], cluster: Cluster) -> Iterator[Fault]:
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
            yield Fault(row, message, ((other, "the runtime"),))
        elif kind in kinds:
            hint = nearest(name, [other_name for _, _, other_name in there])
            yield Fault(row, f"the repository has no {kind} `{name}`{hint}")
