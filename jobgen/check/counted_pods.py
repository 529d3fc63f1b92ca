"""Pods with the number of times that they run, and the search for them in objects of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from jobgen.k8s.devices import is_device
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.k8s.workloads import count_job_pods
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Place
from jobgen.model.quantity import to_milli

MAX_PODS = 2**31 - 1
"""The most that a number of pods can be, and the default of KubeRay and Spark where they scale without a limit."""
CountedPod = tuple[Pod, int]
Unknown = tuple[Place, str]
"""A place, and what is not known about the accelerators there."""


class CreatedPods(NamedTuple):
    """The pods of an object, each with the number of times that it runs."""

    manifest: Manifest
    """The object as it may be later: started by its queue, with all workers that Ray may add."""
    described: Sequence[CountedPod]
    """Those in the places where its kind has pods."""
    hidden: Sequence[CountedPod] = ()
    """Pods with accelerators in other places, and those of objects that it creates."""
    unknown: Sequence[Unknown] = ()
    runs: int = 1
    """How many times all of them may run at the same time."""
    advice: str = ""
    """What to write so that their number has a limit; empty if it has one."""
    refused: Sequence[Unknown] = ()
    """What cannot be counted although the file of the team says how, so that the object is refused."""
    outlives_runs: bool = False
    """True if each run leaves objects with pods that go on after it."""

    @property
    def pods(self) -> list[CountedPod]:
        """All of them."""
        pods = [*self.described, *self.hidden]
        return pods if self.runs == 1 else [(pod, min(count * self.runs, MAX_PODS)) for pod, count in pods]


CountObject = Callable[[Mapping[str, Plain]], CreatedPods]
"""Counts the pods of an object inside of another one."""


def read_count(text: str) -> int | None:
    """Return the number that a text is, `MAX_PODS` if it has too many digits, or None."""
    return int(text) if text.isdecimal() and len(text) < 10 else MAX_PODS if text.isdecimal() else None


# How many times what is below a field exists.

_AMOUNTS = ("numNodes", "replicas", "minReplicas", "maxReplicas")
_SCALED_JOBS = 100
"""How many Jobs a ScaledJob of KEDA may have if it does not say."""
_PARALLEL_TRIALS = 3
"""How many trials an Experiment of Katib runs at the same time if it does not say."""
_SCALE = ("min-scale", "minScale", "max-scale", "maxScale", "initial-scale", "initialScale")
"""Annotations of Knative, which KServe hands on; older versions read those without a hyphen."""
_SCALE_DOMAIN = "autoscaling.knative.dev/"
_RUN_TIME = lazy_pattern(r"\{\{|\$[({]")
"""How a text begins whose value another program fills in."""


def count_scale(annotations: Mapping[str, Plain]) -> int:
    """Return the most pods that the annotations of Knative ask for; 1 if they ask for none."""
    numbers = (read_count(as_text(annotations.get(_SCALE_DOMAIN + name))) for name in _SCALE)
    return max((each for each in numbers if each), default=1)


def _count_scaled_jobs(node: Mapping[str, Plain]) -> int:
    most = as_integer(node.get("maxReplicaCount"))
    return _SCALED_JOBS if most is None else max(most, 0)


def _count_trials(node: Mapping[str, Plain]) -> int:
    parallel, most = as_integer(node.get("parallelTrialCount")), as_integer(node.get("maxTrialCount"))
    count = _PARALLEL_TRIALS if parallel is None else max(parallel, 0)
    return count if most is None else min(count, max(most, 0))


def _count_nodes(node: Mapping[str, Plain]) -> int:
    # The node that serves the model is one of them, and stands beside the workers.
    return max((as_integer(node.get("pipelineParallelSize")) or 1) - 1, 1)


def _count_matrix(node: Mapping[str, Plain]) -> int:
    matrix, count = as_mapping(node.get("matrix")), 1
    for each in as_list(matrix.get("params")):
        count = min(count * max(len(as_list(as_mapping(each).get("value"))), 1), MAX_PODS)
    return max(count, 1) + len(as_list(matrix.get("include")))


_COUNTERS: Mapping[str, Callable[[Mapping[str, Plain]], int]] = {
    "jobTargetRef": _count_scaled_jobs,  # a ScaledJob of KEDA
    "trialTemplate": _count_trials,  # an Experiment of Katib
    "pipelineParallelSize": _count_nodes,  # an InferenceService of KServe
    "matrix": _count_matrix,  # a Pipeline of Tekton
}
"""Fields beside which other fields say how many times what is below exists."""


def _count(node: Mapping[str, Plain]) -> int:
    for field, counter in _COUNTERS.items():
        if field in node:
            return counter(node)
    if "template" in node and "parallelism" in node:
        return count_job_pods(node)
    amounts = [as_integer(node.get(name)) for name in _AMOUNTS]
    count = max((max(each, 0) for each in amounts if each is not None), default=1)
    annotations = get_path(node, "metadata", "annotations")
    return count if annotations is None else max(count, count_scale(as_mapping(annotations)))


# Any kind.

_RESOURCES = ("resources", "computeResources", "resourcesPerNode")
ELSEWHERE = (*_RESOURCES[1:], "pipelineParallelSize")
"""Fields by which objects request devices, but for the field of containers."""


class PodSearch:
    """Finds what requests devices: a container, wherever it is. Fields above it say how many it has."""

    def __init__(self, manifest: Manifest, count_object: CountObject | None = None) -> None:
        self.manifest = manifest
        self.count_object = count_object
        self.found: list[CountedPod] = []
        self.unknown: list[Unknown] = []

    def search(self, top: Plain, labels: Mapping[str, Plain], times: int = 1, seen: Iterable[int] = ()) -> None:
        """Search in a part of an object; `seen` are the ids of resources and objects that count already."""
        known = frozenset(seen)
        labels = {**labels, **as_mapping(get_path(top, "podMetadata", "labels"))}
        below: list[tuple[Plain, Mapping[str, Plain], Mapping[str, Plain], int]] = [(top, {}, labels, times)]
        while below:
            node, spec, labels, count = below.pop()
            if isinstance(node, list):
                below += ((item, spec, labels, count) for item in reversed(node))
            if not isinstance(node, dict):
                continue
            if self.count_object is not None and node is not top and _is_object(node):
                if id(node) not in known:
                    self._add_object(node, count)
                continue
            labels = {**labels, **as_mapping(get_path(node, "metadata", "labels"))}
            before, count = len(self.found), min(count * _count(node), MAX_PODS)
            spec = node if "containers" in node or "nodeSelector" in node else spec
            for field in _RESOURCES:
                if field in node and id(node[field]) not in known:
                    self._add_container({**node, "resources": node[field]}, spec, labels, count)
            if len(self.found) == before and "pipelineParallelSize" in node:
                self._add_nodes(node, count, labels)
            # Some kinds have whole objects in `resources`.
            below += ((child, spec, labels, count) for child in reversed(node.values()))

    def _add_container(
        self, container: Mapping[str, Plain], spec: Mapping[str, Plain], labels: Mapping[str, Plain], count: int
    ) -> None:
        resources = as_mapping(container.get("resources"))
        claims = spec.get("resourceClaims") if "claims" in resources else None
        alone = {**spec, "containers": [dict(container)], "initContainers": [], "resourceClaims": claims}
        pod = Pod({"metadata": {"labels": labels}, "spec": alone}, self.manifest)
        if any(pod.devices.values()):
            self.found.append((pod, count))
        self.unknown += find_unknown_amounts(resources)

    def _add_nodes(self, node: Mapping[str, Plain], count: int, labels: Mapping[str, Plain]) -> None:
        """Add the workers of a model whose runtime has their containers: KServe gives each of them its GPUs."""
        if any(field in str(node.get("containers")) for field in _RESOURCES):
            return
        amount = max(as_integer(node.get("tensorParallelSize")) or 1, 1)
        limits: Plain = {"limits": {self.manifest.cluster.gpu_resource: amount}}
        self._add_container({"name": "worker-container", "resources": limits}, {}, labels, count)

    def _add_object(self, obj: Mapping[str, Plain], count: int) -> None:
        assert self.count_object is not None
        created = self.count_object(obj)
        self.unknown += created.unknown
        self.found += ((pod, min(number * count, MAX_PODS)) for pod, number in created.pods)


def _is_object(node: Mapping[str, Plain]) -> bool:
    has_type = "apiVersion" in node and "kind" in node
    return (
        has_type and bool(as_text(node["apiVersion"]) and as_text(node["kind"])) and isinstance(node.get("spec"), dict)
    )


def find_unknown_amounts(resources: Mapping[str, Plain]) -> list[Unknown]:
    """Return the amounts of devices that are a text which another program fills in."""
    amounts = [
        (At(holder, name), as_text(node))
        for holder in (as_mapping(resources.get(side)) for side in ("limits", "requests"))
        for name, node in holder.items()
        if is_device(str(name)) and to_milli(node) is None and _RUN_TIME.search(as_text(node))
    ]
    return [(place, f"`{place.key}: {text}` is known only when it runs") for place, text in amounts]
