"""The requests and limits of a pod as admission sees them: with the defaults of the server and of limit ranges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobgen.check.admission.fields import is_set, iter_mappings
from jobgen.check.cluster.state import ClusterState
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.k8s.pod_sets import POD_SETS, find_pods
from jobgen.k8s.releases import Release
from jobgen.k8s.resources import count_pods
from jobgen.model.data import Node, value_of
from jobgen.model.quantity import to_milli

_POD_LEVEL_RELEASE: Release = (1, 34)
"""The first release that reads the resources of the pod itself."""

_POD_LEVEL_RESOURCES = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


class Amount(NamedTuple):
    """An amount of a resource in thousandths, and the node that sets it; None if a default does."""

    milli: int
    node: Node = None


Amounts = dict[str, Amount]


class ContainerResources(NamedTuple):
    """The requests and limits of a container."""

    data: Mapping[str, Node]
    requests: Amounts
    limits: Amounts
    is_init: bool = False
    is_sidecar: bool = False
    """Whether it is an init container that runs as long as the pod."""

    @property
    def name(self) -> str:
        """The name of the container."""
        return as_text(self.data.get("name"))

    @property
    def place(self) -> Node:
        """The node for an amount that is missing."""
        return as_mapping(self.data.get("resources")) or self.data


class PodResources(NamedTuple):
    """The requests and limits of a pod, and of its containers."""

    containers: tuple[ContainerResources, ...]
    requests: Amounts
    limits: Amounts
    has_own: bool
    """Whether the pod itself sets resources, so that its containers need none."""

    @property
    def is_best_effort(self) -> bool:
        """Whether no container and not the pod has a request or limit of CPU or memory."""
        every = (self.requests, self.limits, *(each for one in self.containers for each in (one.requests, one.limits)))
        return not any(amounts[name].milli for amounts in every for name in _POD_LEVEL_RESOURCES if name in amounts)


def resolve_pod_resources(pod: Pod, limit_ranges: Iterable[Mapping[str, Node]], release: Release) -> PodResources:
    """Return what a pod requests, with the defaults that the server and the limit ranges of its namespace set."""
    defaults = _merge_defaults(limit_ranges)
    containers = [_resolve(data, defaults) for data in iter_mappings(pod.spec.get("containers"))]
    init = [_resolve(data, defaults, is_init=True) for data in iter_mappings(pod.spec.get("initContainers"))]
    requests = _sum([each.requests for each in containers], [(each.requests, each.is_sidecar) for each in init])
    limits = _sum([each.limits for each in containers], [(each.limits, each.is_sidecar) for each in init])
    own = as_mapping(pod.spec.get("resources")) if release >= _POD_LEVEL_RELEASE else {}
    own_requests, own_limits = _parse(own.get("requests")), _parse(own.get("limits"))
    for name, amount in (*own_limits.items(), *own_requests.items()):
        if name in _POD_LEVEL_RESOURCES or name.startswith(_HUGE_PAGES):
            requests[name] = own_requests.get(name, amount)
            limits.update({name: own_limits[name]} if name in own_limits else {})
    return PodResources((*init, *containers), requests, limits, bool(own_requests or own_limits))


def list_defaults(limit_range: Mapping[str, Node]) -> Iterable[tuple[Amounts, Amounts]]:
    """Yield the default limits and requests of containers.

    The server completes them: a limit by the maximum, a request by the default limit, else by the minimum.
    """
    for item in iter_mappings(as_mapping(limit_range.get("spec")).get("limits")):
        if as_text(item.get("type")) == "Container":
            limits = {**_parse(item.get("max")), **_parse(item.get("default"))}
            yield limits, {**_parse(item.get("min")), **limits, **_parse(item.get("defaultRequest"))}


def _merge_defaults(limit_ranges: Iterable[Mapping[str, Node]]) -> tuple[Amounts, Amounts]:
    """Return the default limits and requests of containers, without nodes; the first of each resource counts."""
    limits: Amounts = {}
    requests: Amounts = {}
    for default_limits, default_requests in (each for one in limit_ranges for each in list_defaults(one)):
        for merged, added in ((limits, default_limits), (requests, default_requests)):
            merged.update({name: Amount(amount.milli) for name, amount in added.items() if name not in merged})
    return limits, requests


def _resolve(
    data: Mapping[str, Node], defaults: tuple[Amounts, Amounts], *, is_init: bool = False
) -> ContainerResources:
    resources = as_mapping(data.get("resources"))
    own = _parse(resources.get("limits"))
    limits, requests = {**defaults[0], **own}, {**defaults[1], **own, **_parse(resources.get("requests"))}
    is_sidecar = is_init and value_of(data.get("restartPolicy")) == "Always"
    return ContainerResources(data, requests, limits, is_init, is_sidecar)


def _parse(node: Node) -> Amounts:
    amounts = ((str(name), to_milli(value), value) for name, value in as_mapping(node).items() if is_set(value))
    return {name: Amount(milli, value) for name, milli, value in amounts if milli is not None}


def _sum(main: Sequence[Amounts], init: Sequence[tuple[Amounts, bool]]) -> Amounts:
    """Return what the pod needs at most at the same time: init containers run one after the other, sidecars stay."""
    total: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    most: dict[str, int] = {}
    largest: dict[str, Amount] = {}
    for amounts in (*main, *(amounts for amounts, _ in init)):
        for name, amount in amounts.items():
            if name not in largest or amount.milli > largest[name].milli:
                largest[name] = amount
    for amounts in main:
        _add(total, amounts)
    for amounts, is_sidecar in init:
        # Only these amounts change what is needed; more sidecars never need less.
        for name, amount in amounts.items():
            most[name] = max(most.get(name, 0), sidecars.get(name, 0) + amount.milli)
        if is_sidecar:
            _add(total, amounts)
            _add(sidecars, amounts)
    return {name: Amount(max(total.get(name, 0), most.get(name, 0)), largest[name].node) for name in {**total, **most}}


def _add(total: dict[str, int], amounts: Amounts) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount.milli


_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
_CONTAINER = "node"


def find_runtime(manifest: Manifest, state: ClusterState) -> Mapping[str, Node]:
    """Return the runtime that a TrainJob refers to; empty if it is not known, or if the object is no TrainJob."""
    if manifest.kind_name != "TrainJob":
        return {}
    reference = as_mapping(manifest.spec.get("runtimeRef"))
    kind = as_text(reference.get("kind")) or "ClusterTrainingRuntime"
    namespace = manifest.namespace if kind == "TrainingRuntime" else ""
    return state.runtimes.get((kind, namespace, as_text(reference.get("name"))), {})


def count_created_pods(manifest: Manifest, state: ClusterState) -> Iterator[tuple[Pod, int]]:
    """Yield the pod templates of an object, each with its number of pods; those of a TrainJob from its runtime."""
    runtime = find_runtime(manifest, state)
    if not runtime:
        yield from count_pods(manifest)
        return
    suspended = value_of(manifest.spec.get("suspend")) is True
    for found in find_pods(as_mapping(get_path(runtime, "spec", "template")), POD_SETS["jobset.x-k8s.io", "JobSet"]):
        template, count = as_mapping(found.template), found.total
        if as_text(get_path(found.item, "template", "metadata", "labels", _STEP)) == "trainer":
            count = _count_nodes(manifest, runtime)
            template = _set_resources(template, get_path(manifest.spec, "trainer", "resourcesPerNode"))
        yield Pod(template, manifest), 0 if suspended else count


def _count_nodes(manifest: Manifest, runtime: Mapping[str, Node]) -> int:
    own = as_integer(get_path(manifest.spec, "trainer", "numNodes"))
    shared = as_integer(get_path(runtime, "spec", "mlPolicy", "numNodes"))
    return max(own if own is not None else 1 if shared is None else shared, 0)


def _set_resources(template: Mapping[str, Node], resources: Node) -> Mapping[str, Node]:
    """Give the container that trains the resources of the job."""
    if not is_set(resources):
        return template
    spec = as_mapping(template.get("spec"))
    containers: list[Node] = [
        {**each, "resources": resources} if as_text(each.get("name")) == _CONTAINER else each
        for each in iter_mappings(spec.get("containers"))
    ]
    return {**template, "spec": {**spec, "containers": containers}}
