"""A claim for one node, or one pod, that several pods mount."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Fact, Violation, rule
from jobgen.k8s.objects import Manifest, as_list, as_text, get_path, path_to_role
from jobgen.spec.overlay import Cluster

_ONE_NODE, _ONE_POD = "ReadWriteOnce", "ReadWriteOncePod"


def collect(manifest: Manifest) -> Iterator[Fact]:
    """Claims with how they may be mounted; and jobs with the claims that they mount, by how many pods."""
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
def shared_single_node_claim(rows: list[Fact], cluster: Cluster) -> Iterator[Violation]:
    """A claim for one node or one pod (`ReadWriteOnce`, `ReadWriteOncePod`) that several pods mount.

    Pods on other nodes than the first cannot mount a `ReadWriteOnce` claim and hang in `ContainerCreating`; of those
    that mount a `ReadWriteOncePod` only one ever starts. Use `ReadWriteMany`, or a claim for each.
    """
    del cluster
    claims = {row.fact[0]: row for row in rows if row.fact[1] is not None}
    first: dict[tuple[str, str], Fact] = {}
    for row in rows:
        identity, modes_of_claim, *_ = row.fact
        if modes_of_claim is None and identity in claims:
            modes = set(claims[identity].fact[1])
            if modes in ({_ONE_NODE}, {_ONE_POD}):
                yield from _judged(row, first.setdefault(identity, row), claims[identity], modes.pop())


def _judged(row: Fact, first: Fact, claim: Fact, mode: str) -> Iterator[Violation]:
    """One job's use of a claim: by several pods of its own, or beside another job."""
    (_, name), _, pods, _ = row.fact
    told = ((claim, f"the claim is {mode}"),)
    if pods > 1:
        message = f"{pods} pods mount `{name}`, which is {mode}; use `ReadWriteMany`, or a claim for each"
        yield Violation(row, message, told, severity=ERROR if mode == _ONE_POD else WARNING)
    elif first is not row and pods:
        message = f"`{first.fact[3]}` mounts `{name}` too, which is {mode}; use `ReadWriteMany`"
        yield Violation(row, message, (*told, (first, "mounted here too")))
