"""Runtimes of TrainJobs."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Fact, FactViolation, rule
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.suggest import find_closest
from jobgen.spec.overlay import Cluster

_CLUSTER, _OWN = "ClusterTrainingRuntime", "TrainingRuntime"
# The runtimes that Trainer installs; those of torchtune share a prefix.
_CUTOFF = 0.85
_SHIPPED = frozenset(
    """torch-distributed torch-distributed-with-cache deepspeed-distributed mlx-distributed jax-distributed
    xgboost-distributed""".split()
)


def collect(manifest: Manifest) -> Iterator[Fact]:
    """Yield a runtime by kind, namespace and name, or the runtime that a TrainJob refers to."""
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
def unknown_runtime(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A TrainJob whose runtime is neither in the repository nor shipped with Trainer.

    Trainer's webhook rejects a TrainJob whose runtime does not exist. The rule looks only for kinds of runtime that the
    repository contains; others can exist in the cluster only.

    Correct the name or the `kind` in `runtimeRef`. A TrainingRuntime must be in the namespace of the job.
    """
    del cluster
    known = {fact.value[1:]: fact for fact in facts if fact.value[0]}
    kinds = {kind for kind, _, _ in known}
    for fact in facts:
        is_runtime, kind, namespace, name = fact.value
        wanted = (kind, namespace if kind == _OWN else "", name)
        if is_runtime or wanted in known or (kind == _CLUSTER and (name in _SHIPPED or name.startswith("torchtune-"))):
            continue
        other = known.get((_OWN, namespace, name)) if kind == _CLUSTER else known.get((_CLUSTER, "", name))
        if other is not None:
            message = f"`{name}` is a {other.value[1]}; set `kind: {other.value[1]}` in `runtimeRef`"
            yield FactViolation(fact, message, ((other, "the runtime"),))
        elif kind in kinds:
            names = [other_name for _, _, other_name in known]
            start = f"the repository has no {kind} `{name}`"
            # Names of runtimes share words, such as `torch`, so a name must be very close to be meant.
            close = find_closest(name, names, _CUTOFF)
            hint = f"; did you mean `{close}`?" if close else ""
            yield FactViolation(fact, f"{start}{hint}", evidence=(name,))
