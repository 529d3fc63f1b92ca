"""The configuration of Kueue in a cluster, as far as it decides about admission."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jobgen.kueue.objects import as_list, as_mapping
from jobgen.kueue.preemption import DEFAULT_STRATEGIES, Rules
from jobgen.kueue.requests import NO_SETTINGS, ResourceSettings, parse_settings

NEWEST = (0, 19)
MAX_NODES = 50_000
"""The nodes of a large cluster, and no more than take seconds."""
_HOSTNAME = "kubernetes.io/hostname"


class NodeGroup(NamedTuple):
    """Equal nodes of a cluster, in short."""

    flavor: str
    size: int
    labels: Mapping[str, str]
    capacity: Mapping[str, Any]


class Configuration(NamedTuple):
    """What an overlay declares under `cluster.kueue`."""

    version: tuple[int, ...] = NEWEST
    rules: Rules = Rules()
    manages_unqueued: bool = False
    """Whether it manages jobs that name no queue."""
    namespace_selector: Mapping[str, Any] | None = None
    frameworks: frozenset[str] | None = None
    """The integrations that are on; None if those that the version enables."""
    resources: ResourceSettings = NO_SETTINGS
    nodes: tuple[NodeGroup, ...] = ()
    remarks: tuple[str, ...] = ()
    """What of it is not simulated."""


def parse_configuration(block: Mapping[str, Any], version: str = "") -> Configuration:
    """Parse `cluster.kueue`; `version` is that of the cluster's operators."""
    resources = as_mapping(block.get("resources"))
    frameworks = block.get("frameworks")
    selector = block.get("managedJobsNamespaceSelector")
    nodes = tuple(_parse_group(as_mapping(each)) for each in as_list(block.get("nodes")))
    parsed = parse_version(version) or NEWEST
    return Configuration(
        version=parsed,
        rules=Rules(
            is_fair=block.get("fairSharing") is True,
            strategies=tuple(map(str, as_list(block.get("preemptionStrategies")))) or DEFAULT_STRATEGIES,
            ignores_undeclared=resources.get("quotaCheckStrategy") == "IgnoreUndeclared",
        ),
        manages_unqueued=block.get("managedJobsWithoutQueueName") is True,
        namespace_selector=selector if isinstance(selector, dict) else None,
        frameworks=None if frameworks is None else frozenset(map(str, as_list(frameworks))),
        resources=parse_settings(resources),
        nodes=tuple(_limit_nodes(nodes)),
        remarks=tuple(_list_remarks(nodes, parsed)),
    )


def _list_remarks(nodes: Sequence[NodeGroup], version: tuple[int, ...]) -> Iterator[str]:
    total = sum(each.size for each in nodes)
    if total > MAX_NODES:
        yield f"`nodes` has {total} nodes, of which only the first {MAX_NODES} are simulated"
    if version != NEWEST:
        shown = ".".join(map(str, NEWEST))
        yield f"decisions are those of Kueue {shown}; only the kinds that it manages are those of the declared version"


def _limit_nodes(nodes: Sequence[NodeGroup]) -> Iterator[NodeGroup]:
    """Yield groups with at most as many nodes in all as can be simulated in seconds."""
    left = MAX_NODES
    for each in nodes:
        yield each._replace(size=min(each.size, left))
        left -= min(each.size, left)


def parse_version(text: str) -> tuple[int, ...]:
    """Return the major and minor number of a version; empty if it has none."""
    parts = text.removeprefix("v").split("-")[0].split("+")[0].split(".")[:2]
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()


def _parse_group(raw: Mapping[str, Any]) -> NodeGroup:
    size = raw.get("count")
    return NodeGroup(
        flavor=str(raw.get("flavor") or ""),
        size=max(size, 0) if type(size) is int else 0,
        labels={str(key): str(value) for key, value in as_mapping(raw.get("labels")).items()},
        capacity=as_mapping(raw.get("capacity")),
    )


def build_nodes(groups: tuple[NodeGroup, ...], flavor_labels: Mapping[str, Mapping[str, str]]) -> Iterator[Any]:
    """Build the Node objects of groups: each has the labels of its flavor, those of the group, and its own name."""
    for number, group in enumerate(groups):
        for index in range(group.size):
            name = f"{group.flavor or 'node'}-{number}-{index}"
            labels = {_HOSTNAME: name, **flavor_labels.get(group.flavor, {}), **group.labels}
            yield {
                "metadata": {"name": name, "labels": labels},
                # A node has room for 110 pods, unless its kubelet is configured otherwise.
                "status": {
                    "allocatable": {"pods": "110", **group.capacity},
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }
