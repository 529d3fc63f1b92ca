"""Paths in an object, and the objects inside of an AppWrapper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text
from jobgen.k8s.objects import Container, Role
from jobgen.k8s.workloads import POD_SETS, REPLICA_TYPES, FoundPods, find_pods
from jobgen.model.data import Plain, Tree, text_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

ObjectPath = tuple[str | int, ...]
"""Keys and indexes that lead from an object to a node in it."""


def path_to_role(role: Role) -> ObjectPath:
    """Return the path to a role's replica spec."""
    kind = role.manifest.kind
    assert kind is not None
    if kind.shape == "one":
        return tuple(map(str, kind.replicas_at[:-1]))
    return next(item.path for item in kind.list_items(role.manifest.object) if item.data is role.replica_spec)


def path_to_container_field(container: Container, index: int, field: str) -> ObjectPath:
    """Return the path to a field of a container, which has this index in its pod."""
    kind, role = container.pod.manifest.kind, container.pod.role
    assert kind is not None
    assert role is not None, "only the containers of roles have facts"
    if container.pod.partial and kind.template is not None:
        return tuple(map(str, kind.template.container[field]))
    return (*path_to_role(role), *map(str, kind.replicas.template), "spec", "containers", index, field)


_KNOWN_KINDS = {
    ("apps/v1", "Deployment"): POD_SETS["apps", "Deployment"],
    ("apps/v1", "StatefulSet"): POD_SETS["apps", "StatefulSet"],
    ("batch/v1", "Job"): POD_SETS["batch", "Job"],
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): POD_SETS["jobset.x-k8s.io", "JobSet"],
    ("kubeflow.org/v1", "PyTorchJob"): REPLICA_TYPES["kubeflow.org", "PyTorchJob"],
    ("ray.io/v1", "RayCluster"): POD_SETS["ray.io", "RayCluster"],
    # It does not know the pod that submits a job.
    ("ray.io/v1", "RayJob"): POD_SETS["ray.io", "RayJob"][:2],
    ("v1", "Pod"): POD_SETS["", "Pod"],
}
_step = lazy_pattern(r"\.([^.\[\]]+)|\[([0-9]{1,6})\]")


class WrappedPods(NamedTuple):
    """Pods that AppWrapper finds in an object of a kind that it knows."""

    path: str
    """The path of their template, such as `template.spec.template`."""
    total: int
    found: FoundPods


def find_wrapped_pods(wrapped: Mapping[str, Any]) -> Iterator[WrappedPods]:
    """Yield the pods of a wrapped object, if AppWrapper knows its kind."""
    identity = as_text(wrapped.get("apiVersion")), as_text(wrapped.get("kind"))
    for found in find_pods(wrapped, _KNOWN_KINDS.get(identity, ())):
        if found.pod_set.role and not isinstance(found.template, dict):
            continue
        total = found.total
        if found.pod_set.least:
            # It ignores the bounds and the hosts of a group of workers.
            written = as_integer(found.item.get("replicas"))
            total = 1 if written is None else max(written, 0)
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in found.path)
        yield WrappedPods(f"template{''.join(steps)}", total, found)


def follow_path(wrapped: Mapping[str, Any], path: str) -> Any:
    """Return what is at a path such as `template.spec.tasks[0].template` in a wrapped object; None if nothing is."""
    node: Any = wrapped
    position = len("template")
    if not path.startswith("template"):
        return None
    while position < len(path):
        step = _step.match(path, position)
        if step is None:
            return None
        key, index = step.groups()
        items = as_list(node)
        node = as_mapping(node).get(key) if key else items[int(index)] if int(index) < len(items) else None
        position = step.end()
    return node


def list_items(obj: Mapping[str, Plain]) -> Iterator[Mapping[str, Plain]]:
    """Yield the objects of a list, as `kubectl` creates them: an item of a `SecretList` may lack its kind."""
    kind = as_text(obj.get("kind"))
    if kind.endswith("List"):
        missing: dict[str, Plain] = {"apiVersion": obj.get("apiVersion"), "kind": kind.removesuffix("List")}
        for item in as_list(obj.get("items")):
            if isinstance(item, dict):
                yield item if as_text(item.get("kind")) else {**item, **missing}


def is_app_wrapper(obj: Mapping[str, Tree]) -> bool:
    """Return True if an object is an AppWrapper with components; other versions have objects in other places."""
    if text_of(obj.get("kind")) != "AppWrapper":
        return False
    return text_of(obj.get("apiVersion")) == "workload.codeflare.dev/v1beta2"


def list_wrapped_objects(obj: Mapping[str, Tree]) -> Iterator[tuple[ObjectPath, Mapping[str, Tree]]]:
    """Yield the objects inside an AppWrapper, each with its path; they get its namespace."""
    namespace = as_mapping(obj.get("metadata")).get("namespace")
    for index, component in enumerate(as_list(as_mapping(obj.get("spec")).get("components"))):
        template = as_mapping(component).get("template")
        if isinstance(template, dict) and text_of(template.get("kind")) and not is_app_wrapper(template):
            metadata = template.get("metadata")
            if text_of(namespace) and isinstance(metadata, dict) and not metadata.get("namespace"):
                # `metadata` keeps its key, which may have a location.
                template = {**template, "metadata": {**metadata, "namespace": namespace}}
            yield ("spec", "components", index, "template"), template
