"""A claim for one node, or one pod, that several pods mount."""

from collections.abc import Iterator
from typing import NamedTuple

from jobgen.overlay import Cluster
from jobgen.rules import ERROR, WARNING, Fault, Row, rule
from jobgen.view import Manifest, at, items, text
from jobgen.ways import to_role

_ONE_NODE, _ONE_POD = "ReadWriteOnce", "ReadWriteOncePod"


class _Mount(NamedTuple):
    """A job's use of a claim: by how many pods."""

    pods: int
    job: str


def gather(manifest: Manifest) -> Iterator[Row]:
    """Claims with how they may be mounted; and jobs with the claims that they mount."""
    if manifest.kind_name == "PersistentVolumeClaim":
        modes = tuple(text(mode) for mode in items(manifest.spec.get("accessModes")))
        yield Row(((manifest.namespace, manifest.name), modes), ("spec", "accessModes"))
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
        yield Row(((manifest.namespace, claim), _Mount(count, manifest.name)), paths[claim])


@rule("fleet", WARNING, gather=gather)
def shared_single_node_claim(rows: list[Row], cluster: Cluster) -> Iterator[Fault]:
    """A claim for one node or one pod (`ReadWriteOnce`, `ReadWriteOncePod`) that several pods mount.

    Pods on other nodes than the first cannot mount a `ReadWriteOnce` claim and hang in `ContainerCreating`; of those
    that mount a `ReadWriteOncePod` only one ever starts. Use `ReadWriteMany`, or a claim for each.
    """
    del cluster
    claims = {row.fact[0]: row for row in rows if not isinstance(row.fact[1], _Mount)}
    first: dict[tuple[str, str], Row] = {}
    for row in rows:
        identity, mount = row.fact
        if isinstance(mount, _Mount) and identity in claims:
            modes = set(claims[identity].fact[1])
            if modes in ({_ONE_NODE}, {_ONE_POD}):
                yield from _judged(row, first.setdefault(identity, row), claims[identity], modes.pop())


def _judged(row: Row, first: Row, claim: Row, mode: str) -> Iterator[Fault]:
    """One job's use of a claim: by several pods of its own, or beside another job."""
    name, mount = row.fact[0][1], row.fact[1]
    told = ((claim, f"the claim is {mode}"),)
    if mount.pods > 1:
        message = f"{mount.pods} pods mount `{name}`, which is {mode}; use `ReadWriteMany`, or a claim for each"
        yield Fault(row, message, told, severity=ERROR if mode == _ONE_POD else WARNING)
    elif first is not row and mount.pods:
        message = f"`{first.fact[1].job}` mounts `{name}` too, which is {mode}; use `ReadWriteMany`"
        yield Fault(row, message, (*told, (first, "mounted here too")))
