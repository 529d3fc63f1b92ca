"""The configuration of Kueue in a cluster, as far as it decides about admission."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.preemption import DEFAULT_STRATEGIES, Rules
from jobgen.features.kueue.version.gate_defaults import gates_at
from jobgen.features.kueue.version.versions import IGNORED, adapt_settings, treat_claims
from jobgen.features.kueue.workload.requests import NO_SETTINGS, ResourceSettings, parse_settings
from jobgen.model.named_tuple import NamedTuple

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
    gates: Mapping[str, bool] = gates_at(NEWEST, {})
    """The feature gates that decide about admission, and whether they are on."""
    switched: Mapping[str, bool] = {}
    """The feature gates that differ from the defaults of the version."""
    ignored: tuple[str, ...] = ()
    """The declared parts of the configuration that the version ignores."""


def parse_configuration(
    block: Mapping[str, Any], version: str = "", enabled: Iterable[str] | None = None
) -> Configuration:
    """Parse `cluster.kueue`; `version` is that of the cluster's operators, and `enabled` are its `featureGates`.

    If the block has `featureGates`, they are all that differs from the defaults; else the gates of the cluster count.
    """
    found = parse_version(version) or NEWEST
    switched = _parse_gates(block, enabled)
    gates = gates_at(found, switched)
    resources = as_mapping(block.get("resources"))
    settings = parse_settings(resources)
    adapted = adapt_settings(settings, found, gates)
    ignores_undeclared = resources.get("quotaCheckStrategy") == "IgnoreUndeclared"
    frameworks = block.get("frameworks")
    selector = block.get("managedJobsNamespaceSelector")
    nodes = tuple(_parse_group(as_mapping(each)) for each in as_list(block.get("nodes")))
    return Configuration(
        version=found,
        rules=Rules(
            is_fair=block.get("fairSharing") is True,
            strategies=tuple(map(str, as_list(block.get("preemptionStrategies")))) or DEFAULT_STRATEGIES,
            within_nominal=gates["FairSharingPreemptWithinNominal"],
            ignores_undeclared=ignores_undeclared and gates["QuotaCheckStrategy"],
        ),
        manages_unqueued=block.get("managedJobsWithoutQueueName") is True,
        namespace_selector=selector if isinstance(selector, dict) else None,
        frameworks=None if frameworks is None else frozenset(map(str, as_list(frameworks))),
        resources=adapted,
        nodes=tuple(_limit_nodes(nodes)),
        remarks=tuple(_list_remarks(nodes)),
        gates=gates,
        switched=switched,
        ignored=tuple(_list_ignored(settings, adapted, gates, ignores_undeclared=ignores_undeclared)),
    )


def _list_ignored(
    settings: ResourceSettings, adapted: ResourceSettings, gates: Mapping[str, bool], *, ignores_undeclared: bool
) -> Iterator[str]:
    """Yield the declared settings for requests that a version does not read."""
    if len(settings.transformations) != len(adapted.transformations):
        yield "`transformations`"
    elif settings.transformations != adapted.transformations:
        yield "`multiplyBy` of transformations"
    if ignores_undeclared and not gates["QuotaCheckStrategy"]:
        yield "`quotaCheckStrategy`"
    if settings.devices.resources and treat_claims(gates) == IGNORED:
        yield "claims of devices"


def _parse_gates(block: Mapping[str, Any], enabled: Iterable[str] | None) -> dict[str, bool]:
    """Return the feature gates that an overlay switches."""
    own = block.get("featureGates")
    if own is None:
        return {str(name): True for name in enabled or ()}
    return {str(name): value for name, value in as_mapping(own).items() if isinstance(value, bool)}


def _list_remarks(nodes: Sequence[NodeGroup]) -> Iterator[str]:
    total = sum(each.size for each in nodes)
    if total > MAX_NODES:
        yield f"`nodes` has {total} nodes, of which only the first {MAX_NODES} are simulated"


def _limit_nodes(nodes: Sequence[NodeGroup]) -> Iterator[NodeGroup]:
    """Yield groups with at most as many nodes in all as can be simulated in seconds."""
    left = MAX_NODES
    for each in nodes:
        yield each._replace(size=min(each.size, left))
        left -= min(each.size, left)


def parse_version(text: str) -> tuple[int, ...]:
    """Return the numbers of a version, with the patch if it has one; empty if it has none."""
    parts = text.removeprefix("v").split("-")[0].split("+")[0].split(".")[:3]
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
