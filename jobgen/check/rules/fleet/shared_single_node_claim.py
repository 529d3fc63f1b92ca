"""A claim for one node, or one pod, that several pods mount."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Fault, Row, rule
from jobgen.k8s.object_paths import to_role
from jobgen.k8s.objects import Manifest, at, items, text
from jobgen.spec.overlay import Cluster

_ONE_NODE, _ONE_POD = "ReadWriteOnce", "ReadWriteOncePod"


def gather(manifest: Manifest) -> Iterator[Row]:
    """Claims with how they may be mounted; and jobs with the claims that they mount, by how many pods."""
    if manifest.kind_name == "PersistentVolumeClaim":
        modes = tuple(text(mode) for mode in items(manifest.spec.get("accessModes")))
        yield Row(((manifest.namespace, manifest.name), modes, 0, ""), ("spec", "accessModes"))
        return
    pods: dict[str, int] = {}
    paths: dict[str, tuple[str | int, ...]] = {}
    for role in manifest.roles:
        for number, volume in enumerate(items(role.pod.spec.get("volumes"))):
            claim = text(at(volume, "persistentVolumeClaim", "claimName"))
            if claim:
                pods[claim] = pods.get(claim, 0) + role.count
                steps = ("template", "spec", "volumes", number, "persistentVolumeClaim", "claimName")
                paths.setdefault(claim, (*to_role(role), *steps))
    for claim, count in pods.items():
        yield Row(((manifest.namespace, claim), None, count, manifest.name), paths[claim])


@rule("fleet", WARNING, gather=gather)
def shared_single_node_claim(rows: list[Row], cluster: Cluster) -> Iterator[Fault]:
    """A claim for one node or one pod (`ReadWriteOnce`, `ReadWriteOncePod`) that several pods mount.

    Pods on other nodes than the first cannot mount a `ReadWriteOnce` claim and hang in `ContainerCreating`; of those
    that mount a `ReadWriteOncePod` only one ever starts. Use `ReadWriteMany`, or a claim for each.
    """
    del cluster
    claims = {row.fact[0]: row for row in rows if row.fact[1] is not None}
    first: dict[tuple[str, str], Row] = {}
    for row in rows:
        identity, modes_of_claim, *_ = row.fact
        if modes_of_claim is None and identity in claims:
            modes = set(claims[identity].fact[1])
            if modes in ({_ONE_NODE}, {_ONE_POD}):
                yield from _judged(row, first.setdefault(identity, row), claims[identity], modes.pop())


def _judged(row: Row, first: Row, claim: Row, mode: str) -> Iterator[Fault]:
    """One job's use of a claim: by several pods of its own, or beside another job."""
    (_, name), _, pods, _ = row.fact
    told = ((claim, f"the claim is {mode}"),)
    if pods > 1:
        message = f"{pods} pods mount `{name}`, which is {mode}; use `ReadWriteMany`, or a claim for each"
        yield Fault(row, message, told, severity=ERROR if mode == _ONE_POD else WARNING)
    elif first is not row and pods:
        message = f"`{first.fact[3]}` mounts `{name}` too, which is {mode}; use `ReadWriteMany`"
        yield Fault(row, message, (*told, (first, "mounted here too")))
