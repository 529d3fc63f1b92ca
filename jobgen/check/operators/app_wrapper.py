"""What the webhook of AppWrapper rejects; the checker checks the objects inside on their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.operators.checks import REJECTED, Check, Checks, Violations
from jobgen.check.rules import Violation
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import find_key

OPERATOR = "appwrapper"

_MAX_POD_SETS = 8
_API_VERSION, _KIND = "workload.codeflare.dev/v1beta2", "AppWrapper"
_PLAIN_KINDS = {
    ("v1", "Pod"): ("template", ""),
    ("apps/v1", "Deployment"): ("template.spec.template", "replicas"),
    ("apps/v1", "StatefulSet"): ("template.spec.template", "replicas"),
}
_path = lazy_pattern(r"template(?:\.[^.\[\]]+|\[[0-9]+\])*")
_step = lazy_pattern(r"\.([^.\[\]]+)|\[([0-9]+)\]")


class _PodSet(NamedTuple):
    """Pods of one template: the path of the template, and their number."""

    path: str
    replicas: int


class _Component(NamedTuple):
    """A component of an AppWrapper: the object that it wraps, and what it declares about its pods."""

    data: Mapping[str, Node]
    object: Mapping[str, Node]
    declared: list[Mapping[str, Node]]

    @property
    def identity(self) -> tuple[str, str]:
        """The API version and the kind of the wrapped object."""
        return as_text(self.object.get("apiVersion")), as_text(self.object.get("kind"))


def _list_components(manifest: Manifest) -> list[_Component]:
    return [
        _Component(item, as_mapping(item.get("template")), list(iter_mappings(item.get("podSets"))))
        for item in iter_mappings(manifest.spec.get("components"))
    ]


def _check_components(manifest: Manifest) -> Violations:
    for component in _list_components(manifest):
        if component.identity == (_API_VERSION, _KIND):
            yield Violation(component.object["kind"], "an AppWrapper cannot contain an AppWrapper; list its components")
        metadata = as_mapping(component.object.get("metadata"))
        namespace = as_text(metadata.get("namespace"))
        if namespace and manifest.namespace and namespace != manifest.namespace:
            message = f"the namespace `{namespace}` differs from that of the AppWrapper, `{manifest.namespace}`"
            yield Violation(metadata["namespace"], f"{message}; remove it")


def _check_pod_sets(manifest: Manifest) -> Violations:
    """Check the declared pod sets: that their paths lead to pod templates, and that they match the wrapped object."""
    for component in _list_components(manifest):
        seen: set[str] = set()
        invalid = False
        for pod_set in component.declared:
            path = as_text(pod_set.get("path"))
            node = pod_set.get("path") or pod_set
            if path in seen:
                yield Violation(node, f"`{path}` is the path of an earlier pod set; remove one of them")
                invalid = True
            elif not isinstance(as_mapping(_follow(component, path)).get("spec"), dict):
                message = f"`{path}` leads to no pod template; write a path such as `template.spec.template`"
                yield Violation(node, message)
                invalid = True
            seen.add(path)
        if component.declared and not invalid:
            yield from _compare_pod_sets(component)


def _compare_pod_sets(component: _Component) -> Violations:
    inferred = list(_infer_pod_sets(component))
    declared = {as_text(pod_set.get("path")): pod_set for pod_set in component.declared}
    kind, node = component.identity[1], find_key(component.data, "podSets")
    if inferred and len(inferred) != len(declared):
        message = f"`podSets` has {len(declared)} items, but the {kind} has {len(inferred)} pod templates"
        yield Violation(node, f"{message}; remove `podSets`, or list all")
        return
    for path, replicas in inferred:
        if path not in declared:
            yield Violation(node, f"`podSets` does not list `{path}` of the {kind}; add it, or remove `podSets`")
            continue
        found = as_integer(declared[path].get("replicas"))
        if (1 if found is None else found) != replicas:
            message = f"`replicas` of `{path}` is `{1 if found is None else found}`, but the {kind} has {replicas} pods"
            yield Violation(declared[path].get("replicas") or declared[path], f"{message}; use the same number")


def _check_count(manifest: Manifest) -> Violations:
    components = _list_components(manifest)
    if not components:
        # The schema requires them.
        return
    count = sum(max(len(item.declared), len(list(_infer_pod_sets(item)))) for item in components)
    node = find_key(manifest.spec, "components")
    if not count:
        message = "no component has pods that AppWrapper finds; declare them with `podSets` and a `path`"
        yield Violation(node, message)
    elif count > _MAX_POD_SETS:
        yield Violation(node, f"the components have {count} pod templates; use at most {_MAX_POD_SETS}")


def _follow(component: _Component, path: str) -> Node:
    """Return the node at a path such as `template.spec.tasks[0].template`, or None."""
    if not _path.fullmatch(path):
        return None
    node: Node = component.object
    for key, index in _step.findall(path):
        if key:
            node = as_mapping(node).get(key)
        else:
            items = as_list(node)
            node = items[int(index)] if int(index) < len(items) else None
    return node


def _infer_pod_sets(component: _Component) -> Iterator[_PodSet]:
    """Yield the pod sets that AppWrapper finds itself in objects of known kinds."""
    obj, identity = component.object, component.identity
    spec = as_mapping(obj.get("spec"))
    if identity == ("batch/v1", "Job"):
        yield _PodSet("template.spec.template", _count_pods(spec))
    elif identity == ("jobset.x-k8s.io/v1alpha2", "JobSet"):
        for index, item in enumerate(as_list(spec.get("replicatedJobs"))):
            job = as_mapping(get_path(item, "template", "spec"))
            replicas = as_integer(as_mapping(item).get("replicas"))
            pods = _count_pods(job) * (1 if replicas is None else replicas)
            yield _PodSet(f"template.spec.replicatedJobs[{index}].template.spec.template", pods)
    elif identity == ("kubeflow.org/v1", "PyTorchJob"):
        roles = as_mapping(spec.get("pytorchReplicaSpecs"))
        for name in ("Master", "Worker"):
            if isinstance(as_mapping(roles.get(name)).get("template"), dict):
                path = f"template.spec.pytorchReplicaSpecs.{name}.template"
                yield _PodSet(path, _count_replicas(as_mapping(roles[name])))
    elif identity == ("ray.io/v1", "RayCluster"):
        yield from _infer_ray(spec, "template.spec")
    elif identity == ("ray.io/v1", "RayJob"):
        yield from _infer_ray(as_mapping(spec.get("rayClusterSpec")), "template.spec.rayClusterSpec")
    elif identity in _PLAIN_KINDS:
        path, counted = _PLAIN_KINDS[identity]
        yield _PodSet(path, _count_replicas(spec) if counted else 1)


def _infer_ray(cluster: Mapping[str, Node], path: str) -> Iterator[_PodSet]:
    if not cluster:
        return
    yield _PodSet(f"{path}.headGroupSpec.template", 1)
    for index, group in enumerate(as_list(cluster.get("workerGroupSpecs"))):
        if isinstance(as_mapping(group).get("template"), dict):
            yield _PodSet(f"{path}.workerGroupSpecs[{index}].template", _count_replicas(as_mapping(group)))


def _count_replicas(holder: Mapping[str, Node]) -> int:
    found = as_integer(holder.get("replicas"))
    return 1 if found is None else found


def _count_pods(job: Mapping[str, Node]) -> int:
    """Return the number of pods of a Job at one time."""
    parallelism, completions = (as_integer(job.get(name)) for name in ("parallelism", "completions"))
    pods = 1 if parallelism is None else parallelism
    return pods if completions is None else min(pods, completions)


CHECKS: Checks = {
    "AppWrapper": (
        Check(REJECTED, _check_components),
        Check(REJECTED, _check_pod_sets),
        Check(REJECTED, _check_count),
    ),
}
