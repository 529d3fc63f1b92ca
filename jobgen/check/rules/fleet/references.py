"""What an object refers to, and what does not fit together in one cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import ERROR, WARNING, Fact, FactViolation, Violation, rule
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.finding import FixStep
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import find_closest
from jobgen.spec.overlay import Cluster

if TYPE_CHECKING:
    from jobgen.check.cluster.state import ClusterState


@rule("cluster", ERROR)
def unknown_reference(manifest: Manifest, state: ClusterState) -> Iterator[Violation]:
    """A reference to an object, or to a key in one, that is neither in the repository nor in the exported state.

    The rule applies to the kinds in `cluster.complete`, of which the repository and the folder `cluster.state` hold
    every object. A pod that refers to something else is refused, or never starts; a queue that does not exist admits no
    job. References with `optional: true` are not reported.

    The keys of a ConfigMap or Secret are checked in any case if the repository has the object, its ExternalSecret or
    its SealedSecret, and this names all keys. Keys are readable if SOPS encrypts the values. A name of a ConfigMap or
    Secret is a warning if it is one slip of the keyboard away from one of the repository, or if only another namespace
    has it: the cluster can have an object of this name. In folders without `jobgen.yaml`, files can be meant for
    different clusters, so what another folder has is also a warning. There, a file or a build that has a cluster of
    Strimzi must have the one that `strimzi.io/cluster` names in its topics, users and connectors.

    Correct the name, or add the object. A kind that other tools create does not belong in `cluster.complete`.

    When to turn it off: take a kind out of `cluster.complete` if other tools create objects of it; for a single
    one, write `optional: true` in the reference where the program can do without.
    """
    if not state.cluster.complete and not state.places and "" not in state.keyed_namespaces:
        return
    from jobgen.check.cluster.references import find_broken_references

    for broken in find_broken_references(manifest, state):
        severity = None if broken.is_certain else WARNING
        steps = (FixStep("set", broken.node, broken.meant),) if broken.meant else ()
        meant = broken.meant if broken.is_certain else ""
        violation = Violation(broken.node, broken.message, broken.related, severity, steps, safe=broken.is_certain)
        yield violation._replace(meant=meant, finish=broken.finish)


_CLUSTER, _OWN = "ClusterTrainingRuntime", "TrainingRuntime"
_CUTOFF = 0.85


def collect_runtimes(manifest: Manifest) -> Iterator[Fact]:
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


@rule("fleet", WARNING, kinds=("TrainJob", _CLUSTER, _OWN), collect=collect_runtimes)
def unknown_runtime(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A TrainJob whose runtime is neither in the repository nor shipped with Trainer.

    Trainer's webhook rejects a TrainJob whose runtime does not exist. The rule looks only for kinds of runtime that the
    repository contains; others can exist in the cluster only. It also reports a name that is one slip of the keyboard
    away from a runtime that Trainer installs, such as `torch-distribted`, and one that Trainer installs for the whole
    cluster, with `kind: TrainingRuntime`. In folders without `jobgen.yaml`, the second is info, and a name that is a
    slip away from a runtime of the same file or build is also reported.

    Correct the name or the `kind` in `runtimeRef`. A TrainingRuntime must be in the namespace of the job.

    When to turn it off: when the cluster has a runtime that no file has, copy it to `runtimes/`, or suppress the
    name in `runtimeRef`.
    """
    # Imported late: most repositories have no runtimes.
    from jobgen.check.misspelled_names import SHIPPED_RUNTIMES, describe_other_kind, describe_unshipped, is_shipped
    from jobgen.model.meant import find_meant

    del cluster
    known = {fact.value[1:]: fact for fact in facts if fact.value[0]}
    kinds = {kind for kind, _, _ in known}
    for fact in facts:
        is_runtime, kind, namespace, name = fact.value
        wanted = (kind, namespace if kind == _OWN else "", name)
        if is_runtime or wanted in known or (kind == _CLUSTER and is_shipped(name)):
            continue
        other = known.get((_OWN, namespace, name)) if kind == _CLUSTER else known.get((_CLUSTER, "", name))
        if other is not None:
            message = Sentence("`{}` is a {}; set `kind: {}` in `runtimeRef`", name, other.value[1], other.value[1])
            yield FactViolation(fact, message, ((other, "the runtime"),))
        elif kind == _CLUSTER and (meant := find_meant(name, SHIPPED_RUNTIMES)):
            yield FactViolation(fact, describe_unshipped(name, meant), evidence=(name,))
        elif kind == _OWN and is_shipped(name):
            yield FactViolation(fact, describe_other_kind(name), evidence=(name,))
        elif kind in kinds:
            names = [other_name for _, _, other_name in known]
            start = Sentence("the repository has no {} `{}`", kind, name)
            # Names of runtimes share words, such as `torch`, so a name must be very close to be meant.
            close = find_closest(name, names, _CUTOFF)
            hint = f"; did you mean `{close}`?" if close else ""
            yield FactViolation(fact, Sentence("{}{}", start, hint), evidence=(name,))


def collect_mpi_jobs(manifest: Manifest) -> Iterator[Fact]:
    """Yield the apiVersion of an MPIJob."""
    version = as_text(manifest.object.get("apiVersion"))
    if version in ("kubeflow.org/v1", "kubeflow.org/v2beta1"):
        yield Fact(version, ("apiVersion",))


@rule("fleet", ERROR, kinds=("MPIJob",), collect=collect_mpi_jobs)
def mixed_mpi_versions(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """MPIJobs of both `kubeflow.org/v1` and `kubeflow.org/v2beta1` in one environment.

    training-operator and mpi-operator both name their CRD `mpijobs.kubeflow.org`, and a cluster holds only one CRD of
    that name. It serves one of the two versions and rejects the other.

    Move all jobs to one version.

    When to turn it off: never within one cluster. If the environments of one overlay tree use different operators,
    declare them in `cluster.operators` of each.
    """
    versions = sorted({fact.value for fact in facts})
    if len(versions) < 2:
        return
    kept = versions[1] if cluster.platform == "mpi-operator" else _most_common_version(facts)
    other = next(fact for fact in facts if fact.value == kept)
    for fact in facts:
        if fact.value != kept:
            platform = "mpi-operator" if kept.endswith("/v2beta1") else "kubeflow"
            advice = Sentence("use `platform: {}`, or `apiVersion: {}` in a manifest", platform, kept)
            message = Sentence("a cluster serves MPIJob as `{}` or as `{}`, never both; {}", fact.value, kept, advice)
            yield FactViolation(fact, message, ((other, f"uses `{kept}`"),))


def _most_common_version(facts: list[Fact]) -> str:
    """Return the version that most jobs use, the first one on a tie."""
    versions = [fact.value for fact in facts]
    return str(max(versions, key=versions.count))


def collect_roles(manifest: Manifest) -> Iterator[Fact]:
    """Yield a role by kind, namespace and name, or the role that a RoleBinding refers to."""
    # Imported late: most repositories have no roles.
    from jobgen.check.bound_roles import read_role

    role = read_role(manifest.object)
    if role is not None:
        yield Fact(tuple(role), ("metadata", "name") if role.is_role else ("roleRef", "kind"))


@rule("fleet", WARNING, kinds=("RoleBinding", "Role", "ClusterRole"), collect=collect_roles)
def role_of_another_kind(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A RoleBinding that names a Role as a ClusterRole, or the other way round, or a role by a misspelled name.

    The API server accepts a binding to a role that does not exist, and its subjects get no permissions. The rule
    reports a binding only if the repository has a role of its name, and none of its kind, or a role of its kind whose
    name is one slip of the keyboard away. In folders without `jobgen.yaml`, it compares those of one file or build.

    Correct `kind` or `name` in `roleRef`. An existing binding must be deleted first: its `roleRef` cannot be changed.

    When to turn it off: when the ClusterRole of this name is installed with an operator, and a Role of the same
    name exists by chance, suppress it on `roleRef`.
    """
    del cluster
    # Imported late: most repositories have no roles.
    from jobgen.check.bound_roles import NamedRole, find_wrong_roles

    for found in find_wrong_roles([NamedRole(*fact.value) for fact in facts]):
        wrong = facts[found.number]._replace(path=("roleRef", found.field))
        yield FactViolation(wrong, found.message, ((facts[found.meant], "the role"),))
