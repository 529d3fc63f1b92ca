"""Nodes that take pods, and the pods that run there outside of topology-aware scheduling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.workload.requests import Amounts, charge_pod, read_amounts, sum_pod_requests
from jobgen.model.named_tuple import NamedTuple

_FINISHED = ("Succeeded", "Failed")
_PLACED = tuple(
    f"kueue.x-k8s.io/podset-{name}"
    for name in (
        "required-topology",
        "preferred-topology",
        "unconstrained-topology",
        "slice-required-topology",
        "slice-required-topology-constraints",
    )
)


class Node(NamedTuple):
    """A node: its labels, its taints and what pods can use of it."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, Any], ...]
    allocatable: Amounts


def parse_nodes(objects: Iterable[Mapping[str, Any]]) -> list[Node]:
    """Parse the nodes that are ready and take pods."""
    return [node for node in map(parse_node, objects) if node is not None]


def parse_node(obj: Mapping[str, Any]) -> Node | None:
    """Parse a node; None if it is not ready or takes no pods."""
    metadata, spec, status = (as_mapping(obj.get(name)) for name in ("metadata", "spec", "status"))
    conditions = map(as_mapping, as_list(status.get("conditions")))
    ready = next((each.get("status") for each in conditions if each.get("type") == "Ready"), None)
    if spec.get("unschedulable") or ready != "True":
        return None
    labels = {str(key): str(value) for key, value in as_mapping(metadata.get("labels")).items()}
    taints = tuple(map(as_mapping, as_list(spec.get("taints"))))
    return Node(str(metadata.get("name", "")), labels, taints, read_amounts(as_mapping(status.get("allocatable"))))


def select_nodes(nodes: Iterable[Node], labels: Mapping[str, str], levels: Iterable[str]) -> list[Node]:
    """Select the nodes with all labels of a flavor, and a label for each level of its topology."""
    wanted = tuple(levels)
    return [
        node
        for node in nodes
        if all(node.labels.get(key, "") == value for key, value in labels.items())
        and all(level in node.labels for level in wanted)
    ]


def sum_other_pods(pods: Iterable[Mapping[str, Any]]) -> dict[str, Amounts]:
    """Sum by node what running pods use that topology-aware scheduling has not placed."""
    found: dict[str, Amounts] = {}
    for node, requests in _list_other_pods(pods):
        used = found.setdefault(node, {})
        for name, amount in requests.items():
            used[name] = used.get(name, 0) + amount
        used["pods"] = used.get("pods", 0) + 1
    return found


def _list_other_pods(pods: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Amounts]]:
    for pod in pods:
        metadata, spec, status = (as_mapping(pod.get(name)) for name in ("metadata", "spec", "status"))
        annotations = as_mapping(metadata.get("annotations"))
        is_placed = any(name in annotations for name in _PLACED)
        if spec.get("nodeName") and status.get("phase") not in _FINISHED and not is_placed:
            yield str(spec["nodeName"]), charge_pod(sum_pod_requests(spec))
