"""Claims for one node or one pod that several pods mount."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Fact, FactViolation, rule
from jobgen.k8s.nodes import as_list, as_text, get_path
from jobgen.k8s.object_paths import path_to_role
from jobgen.k8s.objects import Manifest
from jobgen.spec.overlay import Cluster

_ONE_NODE, _ONE_POD = "ReadWriteOnce", "ReadWriteOncePod"


def collect(manifest: Manifest) -> Iterator[Fact]:
    """Yield the access modes of a claim, or the claims that a job mounts with the number of pods that do."""
    if manifest.kind_name == "PersistentVolumeClaim":
        modes = tuple(as_text(mode) for mode in as_list(manifest.spec.get("accessModes")))
        yield Fact(((manifest.namespace, manifest.name), modes, 0, ""), ("spec", "accessModes"))
        return
    pods: dict[str, int] = {}
    paths: dict[str, tuple[str | int, ...]] = {}
    for role in manifest.roles:
        for number, volume in enumerate(as_list(role.pod.spec.get("volumes"))):
            claim = as_text(get_path(volume, "persistentVolumeClaim", "claimName"))
            if claim:
                pods[claim] = pods.get(claim, 0) + role.count
                steps = ("template", "spec", "volumes", number, "persistentVolumeClaim", "claimName")
                paths.setdefault(claim, (*path_to_role(role), *steps))
    for claim, count in pods.items():
        yield Fact(((manifest.namespace, claim), None, count, manifest.name), paths[claim])


@rule("fleet", WARNING, collect=collect)
def shared_single_node_claim(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A `ReadWriteOnce` or `ReadWriteOncePod` claim that several pods mount.

    Pods on any node other than the first cannot mount a `ReadWriteOnce` claim and hang in `ContainerCreating`. Of the
    pods that mount a `ReadWriteOncePod` claim, only one ever starts, which is an error.

    Use `ReadWriteMany`, or one claim for each pod.
    """
    del cluster
    claims = {fact.value[0]: fact for fact in facts if fact.value[1] is not None}
    first: dict[tuple[str, str], Fact] = {}
    for fact in facts:
        identity, modes_of_claim, *_ = fact.value
        if modes_of_claim is None and identity in claims:
            modes = set(claims[identity].value[1])
            if modes in ({_ONE_NODE}, {_ONE_POD}):
                yield from _check_use(fact, first.setdefault(identity, fact), claims[identity], modes.pop())


def _check_use(fact: Fact, first: Fact, claim: Fact, mode: str) -> Iterator[FactViolation]:
    """Check a job's use of a claim: by several pods of its own, or together with another job."""
    (_, name), _, pods, _ = fact.value
    access = ((claim, f"its access mode is `{mode}`"),)
    if pods > 1:
        message = f"{pods} pods mount the claim `{name}`, which is {mode}; use `ReadWriteMany` or one claim per pod"
        yield FactViolation(fact, message, access, severity=ERROR if mode == _ONE_POD else WARNING)
    elif first is not fact and pods:
        message = f"job `{first.value[3]}` also mounts the claim `{name}`, which is {mode}; use `ReadWriteMany`"
        yield FactViolation(fact, message, (*access, (first, "also mounted here")))
