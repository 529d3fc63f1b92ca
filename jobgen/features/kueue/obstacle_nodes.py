"""Where an obstacle stands in a job: the request, selector, toleration or annotation to change, or the queue label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.check.admission.fields import iter_mappings
from jobgen.features.kueue.decision.obstacles import Obstacle
from jobgen.features.kueue.pod_sets import list_pod_sets
from jobgen.features.kueue.queue_state import QueueState
from jobgen.features.kueue.quota import FlavorResource
from jobgen.features.kueue.unreachable import iter_quotas
from jobgen.features.kueue.workload.priority import PRIORITY_LABEL
from jobgen.features.kueue.workload.requests import Transformation
from jobgen.k8s.kueue import DOMAIN, QUEUE_LABEL
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.model.data import Node, locatable, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step, find_path
from jobgen.model.quantity import to_milli
from jobgen.model.suggest import find_key

_COUNTS = ("replicas", "parallelism", "size", "numNodes")
"""Fields that say how many pods a template has."""

_PODS = "pods"


class ObstacleNode(NamedTuple):
    """The node to change first, and others with what they are."""

    node: Node
    related: tuple[tuple[Node, str], ...] = ()


def find_obstacle_node(
    obj: Mapping[str, Node], plain: Mapping[str, Any], obstacle: Obstacle, transformations: Sequence[Transformation]
) -> ObstacleNode:
    """Find where a job is to be changed; `plain` is the same object without locations."""
    path = _find_template(plain, obstacle.pod_set)
    template = as_mapping(_follow(obj, path)) if path else {}
    label = find_queue_node(obj)
    if obstacle.code in ("quota", "resource"):
        return _find_request(template or obj, obj, path, obstacle, transformations) or ObstacleNode(label)
    spec = as_mapping(template.get("spec"))
    found: Node = None
    if obstacle.code == "priority":
        return ObstacleNode(_find_priority_class(obj) or label)
    if obstacle.code == "selector":
        found = _find_selector(spec)
    elif obstacle.code == "taint":
        found = as_list(spec.get("tolerations")) and find_key(spec, "tolerations")
    elif obstacle.code == "topology":
        annotations = as_mapping(as_mapping(template.get("metadata")).get("annotations"))
        found = next((value for key, value in annotations.items() if key.startswith(f"{DOMAIN}podset-")), None)
    return ObstacleNode(label if found is None else locatable(found, spec.get("tolerations"), label))


def find_queue_node(obj: Mapping[str, Node]) -> Node:
    """Return the queue label of a job; its name if it gets its queue by default."""
    metadata = as_mapping(obj.get("metadata"))
    label = as_mapping(metadata.get("labels")).get(QUEUE_LABEL)
    return label if as_text(label) else metadata.get("name", metadata.get("generateName"))


def _find_priority_class(obj: Mapping[str, Node]) -> Node:
    """Return the first name of a priority class in a job, in the order in which Kueue looks for it."""
    label = as_mapping(as_mapping(obj.get("metadata")).get("labels")).get(PRIORITY_LABEL)
    fields = ("priorityClass", "priorityClassName")
    return label or next((found for field in fields for found in _list_values(obj.get("spec"), field)), None)


def _list_values(tree: Node, field: str) -> Iterator[Node]:
    """Yield the values of a field wherever it is, unless they are empty."""
    children = tree if isinstance(tree, list) else ()
    if isinstance(tree, dict):
        if value_of(tree.get(field)):
            yield tree[field]
        children = list(tree.values())
    for child in children:
        yield from _list_values(child, field)


def _find_template(plain: Mapping[str, Any], name: str) -> tuple[Step, ...]:
    """Return the path to the pod template of a pod set; empty if Kueue does not use the template as it is written."""
    for each in list_pod_sets(plain) or ():
        if each["name"] == name:
            return find_path(each["template"], plain)
    return ()


def _follow(tree: Any, path: Sequence[Step]) -> Any:
    for step in path:
        tree = tree[step]
    return tree


def _find_request(
    template: Mapping[str, Node],
    obj: Mapping[str, Node],
    path: Sequence[Step],
    obstacle: Obstacle,
    transformations: Sequence[Transformation],
) -> ObstacleNode | None:
    """Find the largest request of a resource, or of those that Kueue charges as this one."""
    count = _find_count(obj, path)
    if obstacle.resource == _PODS:
        return ObstacleNode(count) if count is not None else None
    sources = [each.source for each in transformations if obstacle.resource in each.outputs]
    for resource in (obstacle.resource, *sources):
        found = list(_list_requests(template, resource))
        if found:
            _, node = max(found, key=lambda pair: pair[0])
            related = () if count is None else ((count, f"the number of pods of `{obstacle.pod_set}`"),)
            return ObstacleNode(node, related)
    return None


def _list_requests(tree: Any, resource: str) -> Iterator[tuple[int, Node]]:
    """Yield the requests of a resource below a node; a limit counts where there is no request."""
    if isinstance(tree, list):
        for child in tree:
            yield from _list_requests(child, resource)
    if not isinstance(tree, dict):
        return
    amounts = {**as_mapping(tree.get("limits")), **as_mapping(tree.get("requests"))}
    if resource in amounts:
        yield to_milli(amounts[resource]) or 0, amounts[resource]
    # Of equal requests, that of a main container comes first.
    for key in sorted(tree, key=lambda key: key == "initContainers"):
        yield from _list_requests(tree[key], resource)


def _find_count(obj: Mapping[str, Node], path: Sequence[Step]) -> Node:
    """Return the number of pods of a template: in the nearest mapping around it that has one."""
    for end in range(len(path) - 1, 0, -1):
        around = _follow(obj, path[:end])
        for name in _COUNTS if isinstance(around, dict) else ():
            if type(value_of(around.get(name))) is int:
                return around[name]  # type: ignore[no-any-return]
    # A TrainJob, whose templates are those of its runtime.
    return get_path(obj, "spec", "trainer", "numNodes")


def _find_selector(spec: Mapping[str, Node]) -> Node:
    """Return what selects nodes: the first label of `nodeSelector`, or the affinity."""
    selector = as_mapping(spec.get("nodeSelector"))
    affinity = as_mapping(as_mapping(spec.get("affinity")).get("nodeAffinity"))
    return next(iter(selector.values()), affinity or None)


def find_cause(obstacle: Obstacle, queue: Mapping[str, Node], queues: QueueState) -> tuple[tuple[Node, str], ...]:
    """Return what of the queue or flavor stands in the way, for a related location."""
    name = as_text(get_path(queue, "metadata", "name"))
    if obstacle.code == "quota":
        quotas = dict(iter_quotas(queue))
        node = quotas.get(FlavorResource(obstacle.flavor, obstacle.resource))
        return ((node, f"quota of ClusterQueue `{name}`"),)
    if obstacle.code == "resource":
        return tuple(
            (group.get("coveredResources"), f"resources of ClusterQueue `{name}`")
            for group in iter_mappings(get_path(queue, "spec", "resourceGroups"))
        )[:1]
    field = {"selector": "nodeLabels", "taint": "nodeTaints", "topology": "topologyName"}.get(obstacle.code)
    flavor = queues.objects.get(("ResourceFlavor", "", obstacle.flavor), {})
    return ((get_path(flavor, "spec", field), f"flavor `{obstacle.flavor}`"),) if field else ()
