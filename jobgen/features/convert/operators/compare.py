"""Compare the pods of two objects: what changes for training, and what only the operators do differently.

Pods are compared by rank, containers by name, and the container that trains with the one that trains. Fields that users
wrote must be equal. Names, addresses, ports, and what an operator adds, may differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jobgen.features.convert.operators.compare_containers import (
    Side,
    compare_containers,
    count_processes,
    is_empty,
    is_launched,
    read_elastic_range,
)
from jobgen.features.convert.operators.created import CreatedPod, Fields, Restarts
from jobgen.features.convert.operators.differences import Change, describe_changes
from jobgen.features.convert.operators.fields import as_fields, as_items, as_string, read_texts
from jobgen.features.convert.operators.hosts import Hosts, find_hosts
from jobgen.features.convert.operators.pod_edits import find_container, list_containers
from jobgen.model.named_tuple import NamedTuple

_SCHEDULING = frozenset(
    """affinity nodeName nodeSelector overhead preemptionPolicy priority priorityClassName resourceClaims resources
    runtimeClassName schedulerName schedulingGates tolerations topologySpreadConstraints""".split()
)
_SEPARATE = frozenset(
    "containers initContainers volumes hostname subdomain restartPolicy serviceAccount setHostnameAsFQDN".split()
)


class PodDifference(NamedTuple):
    """A difference between the pods of two objects."""

    kind: str
    """`nodes`, `processes`, `restart`, `retries`, `image`, `command`, `args`, `env`, `injected`, `resources`, `mounts`,
    `volumes`, `container`, `initContainers`, `scheduling`, `pod`, `metadata`, `ports`, `name` or `host`."""
    where: str
    """The pods: `all nodes`, `rank 0`, `ranks 1-3`, or the role of pods that are not nodes."""
    field: str
    """What differs, such as `env RANK` or `nodeSelector`."""
    before: Any
    after: Any
    training: bool
    """Whether training differs; otherwise only the operators do something else."""


def compare_pods(before: Sequence[CreatedPod], after: Sequence[CreatedPod]) -> list[PodDifference]:
    """List what differs between two sets of pods, first what changes for training."""
    hosts = find_hosts(before), find_hosts(after)
    found = [PodDifference(change.kind, "all nodes", *change[1:]) for change in _compare_worlds(before, after)]
    nodes = [sorted((pod for pod in pods if pod.rank is not None), key=_get_rank) for pods in (before, after)]
    pairs = [(f"{one.rank}", _compare_pair(one, other, hosts)) for one, other in zip(*nodes, strict=False)]
    total = min(map(len, nodes))
    found += [PodDifference(*row) for row in describe_changes(pairs, total)]
    found += _compare_others(before, after, hosts)
    return sorted(found, key=lambda difference: not difference.training)


def is_equal_for_training(differences: Iterable[PodDifference]) -> bool:
    """Return whether the same containers run in the same world: nodes, processes, ranks and restarts are equal."""
    return not any(difference.training for difference in differences)


def _get_rank(pod: CreatedPod) -> int:
    return pod.rank or 0


def _compare_worlds(before: Sequence[CreatedPod], after: Sequence[CreatedPod]) -> Iterator[Change]:
    counts = [sum(pod.count for pod in pods if pod.rank is not None) for pods in (before, after)]
    if counts[0] != counts[1]:
        yield Change("nodes", "nodes", counts[0], counts[1], training=True)


def _compare_others(
    before: Sequence[CreatedPod], after: Sequence[CreatedPod], hosts: tuple[Hosts, Hosts]
) -> Iterator[PodDifference]:
    """Compare pods that are not nodes, such as launchers: they match by role, or by order if roles have other names."""
    others = [{pod.role.lower(): pod for pod in pods if pod.rank is None} for pods in (before, after)]
    lost, added = ([role for role in others[side] if role not in others[1 - side]] for side in (0, 1))
    partners = dict(zip(lost, added, strict=False))
    for role in dict.fromkeys([*others[0], *(role for role in others[1] if role not in partners.values())]):
        one, other = others[0].get(role), others[1].get(partners.get(role, role))
        if one and other:
            changes = [*_compare_pair(one, other, hosts), *_compare_counts(one, other)]
            yield from (PodDifference(change.kind, role, *change[1:]) for change in changes)
        else:
            counts = [pod.count if pod else 0 for pod in (one, other)]
            yield PodDifference("nodes", role, "pods", counts[0], counts[1], training=True)


def _compare_counts(one: CreatedPod, other: CreatedPod) -> Iterator[Change]:
    if one.count != other.count:
        yield Change("nodes", "pods", one.count, other.count, training=True)


def _compare_pair(one: CreatedPod, other: CreatedPod, hosts: tuple[Hosts, Hosts]) -> Iterator[Change]:
    yield from _compare_starts(one, other)
    yield from _compare_all_containers(one, other, hosts)
    yield from _compare_volumes(one, other)
    yield from _compare_fields(one, other)
    yield from _compare_metadata(one, other)
    for kind, field in (("name", "name"), ("host", "hostname"), ("host", "address")):
        if getattr(one, field) != getattr(other, field):
            yield Change(kind, field, getattr(one, field), getattr(other, field), training=False)


def _compare_starts(one: CreatedPod, other: CreatedPod) -> Iterator[Change]:
    """Compare how many processes start, and what happens if they fail."""
    processes = count_processes(one), count_processes(other)
    if all(processes) and processes[0] != processes[1]:
        yield Change("processes", "processes", *processes, training=is_launched(one) or is_launched(other))
    ranges = read_elastic_range(one), read_elastic_range(other)
    if ranges[0] != ranges[1]:
        launched = is_launched(one) or is_launched(other)
        yield Change("nodes", "elastic nodes", ranges[0] or None, ranges[1] or None, training=launched)
    before, after = one.restarts, other.restarts
    if before[:2] != after[:2]:
        # `Always` also restarts what succeeded. Who restarts what failed, the kubelet or the operator, does not matter.
        endless = "Always" in (before.policy, after.policy) and before.policy != after.policy
        differs = before.retried != after.retried or endless
        yield Change("restart", "restartPolicy", _describe(before), _describe(after), training=differs)
    elif before.limit != after.limit:
        yield Change("retries", "backoffLimit", before.limit, after.limit, training=False)


def _describe(restarts: Restarts) -> str:
    outcome = {
        "always": "training is retried",
        "never": "training is not retried",
        "retryable": "training is retried if the exit code allows it",
    }
    return f"{restarts.policy}, {outcome[restarts.retried]}"


def _compare_all_containers(one: CreatedPod, other: CreatedPod, hosts: tuple[Hosts, Hosts]) -> Iterator[Change]:
    for field in ("containers", "initContainers"):
        first, second = (_list_written(pod, field) for pod in (one, other))
        for name, container in first.items():
            partner = second.pop(name, None)
            if partner is None:
                yield Change(field, f"{field} {name}", container.get("image"), None, training=True)
            else:
                yield from compare_containers(Side(one, container, hosts[0]), Side(other, partner, hosts[1]), field)
        for name, container in second.items():
            yield Change(field, f"{field} {name}", None, container.get("image"), training=True)
        added = [_list_injected(pod, field) for pod in (one, other)]
        for name in dict.fromkeys([*added[0], *added[1]]):
            values = [side.get(name) for side in added]
            if values[0] != values[1]:
                images = [as_fields(value).get("image") for value in values]
                yield Change("injected", f"{field} {name}", images[0], images[1], training=False)


def _list_written(pod: CreatedPod, field: str) -> dict[str, Fields]:
    """Return the containers that users wrote, as the operator completes them; the one that trains has an empty name."""
    names = [as_string(each.get("name")) for each in list_containers(as_fields(pod.template.get("spec")), field)]
    main = pod.main if pod.main in names else names[0] if names else ""
    return {
        "" if name == main and field == "containers" else name: find_container(pod.spec, name, field) for name in names
    }


def _list_injected(pod: CreatedPod, field: str) -> dict[str, Fields]:
    """Return the containers that the operator adds."""
    written = as_fields(pod.template.get("spec"))
    named = ((as_string(each.get("name")), each) for each in list_containers(pod.spec, field))
    return {name: container for name, container in named if not find_container(written, name, field)}


def _compare_volumes(one: CreatedPod, other: CreatedPod) -> Iterator[Change]:
    """Compare what volumes hold; their names do not matter, because mounts are compared with the volumes they use."""
    sides = []
    for pod in (one, other):
        written = as_items(as_fields(pod.template.get("spec")).get("volumes"))
        sides.append([{key: value for key, value in as_fields(each).items() if key != "name"} for each in written])
    for lost in (volume for volume in sides[0] if volume not in sides[1]):
        yield Change("volumes", f"volume {next(iter(lost), '')}", lost, None, training=True)
    for added in (volume for volume in sides[1] if volume not in sides[0]):
        yield Change("volumes", f"volume {next(iter(added), '')}", None, added, training=True)


def _compare_fields(one: CreatedPod, other: CreatedPod) -> Iterator[Change]:
    """Compare the other fields of the pod spec."""
    for field in dict.fromkeys([*one.spec, *other.spec]):
        values = [_get_field(pod, field) for pod in (one, other)]
        if field in _SEPARATE or values[0] == values[1]:
            continue
        written = [not is_empty(as_fields(pod.template.get("spec")).get(field)) for pod in (one, other)]
        added = any(not is_empty(value) and not wrote for value, wrote in zip(values, written, strict=True))
        kind = "injected" if added else "scheduling" if field in _SCHEDULING else "pod"
        yield Change(kind, field, values[0], values[1], training=not added)


def _get_field(pod: CreatedPod, field: str) -> Any:
    value = pod.spec.get(field)
    if field == "serviceAccountName" and is_empty(value):
        value = pod.spec.get("serviceAccount")
    return None if is_empty(value) else value


def _compare_metadata(one: CreatedPod, other: CreatedPod) -> Iterator[Change]:
    """Compare the labels and annotations that users wrote."""
    for field in ("labels", "annotations"):
        first, second = (read_texts(as_fields(pod.template.get("metadata")).get(field)) for pod in (one, other))
        for key in dict.fromkeys([*first, *second]):
            values = [getattr(pod, field).get(key) for pod in (one, other)]
            if values[0] != values[1]:
                yield Change("metadata", f"{field} {key}", values[0], values[1], training=True)
