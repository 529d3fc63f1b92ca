"""Pod sets of AppWrappers: those that a component declares, or those of a kind that AppWrapper knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.pod_sets.jobs import COMPLETION_INDEX, JOB_INDEX, REPLICA_INDEX
from jobgen.features.kueue.pod_sets.raw import RawPodSet, count_job_pods, get_spec, make_pod_set, read_count
from jobgen.features.kueue.pod_sets.topology_request import Gates, Labels, parse_integer
from jobgen.k8s.images import find_image_error, parse_image_name
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

_ANNOTATION = "workload.codeflare.dev.appwrapper/tas-"
_STEP = lazy_pattern(r"\.([^.\[]+)|\[([0-9]{1,6})\]")


class _Declared(NamedTuple):
    """A pod set of a component: a template at a path, and its number of pods."""

    path: str
    replicas: int
    labels: Labels = Labels()


def list_app_wrapper(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod sets of an AppWrapper, numbered in the order of its components."""
    name = as_mapping(obj.get("metadata")).get("name", "")
    components = [as_mapping(each) for each in as_list(get_spec(obj).get("components"))]
    statuses = as_list(as_mapping(obj.get("status")).get("componentStatus"))
    known = map(as_mapping, statuses) if len(statuses) == len(components) else iter(components)
    found: list[RawPodSet] = []
    for component, holder in zip(components, known, strict=True):
        wrapped = as_mapping(component.get("template"))
        declared = [_read_declared(each) for each in map(as_mapping, as_list(holder.get("podSets")))]
        for each in declared or _infer(wrapped):
            template = _find_at(wrapped, each.path)
            if isinstance(as_mapping(template).get("spec"), dict):
                copied = _copy_template(as_mapping(template))
                found.append(make_pod_set(f"{name}-{len(found)}", each.replicas, copied, gates, each.labels))
    return found


def _read_declared(raw: Mapping[str, Any]) -> _Declared:
    annotations = as_mapping(raw.get("annotations"))
    labels = Labels(
        str(annotations.get(_ANNOTATION + "pod-index-label", "")),
        str(annotations.get(_ANNOTATION + "sub-group-index-label", "")),
        parse_integer(annotations.get(_ANNOTATION + "sub-group-count")),
    )
    return _Declared(str(raw.get("path", "")), read_count(raw.get("replicas")), labels)


def _find_at(wrapped: Mapping[str, Any], path: str) -> Any:
    """Return what is at a path such as `template.spec.replicatedJobs[0].template`; None if there is nothing."""
    position = len("template")
    found: Any = wrapped
    if not path.startswith("template"):
        return None
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            return None
        key, index = step.groups()
        if key is not None:
            found = as_mapping(found).get(key)
        else:
            items = as_list(found)
            found = items[int(index)] if int(index) < len(items) else None
        position = step.end()
    return found


def _infer(wrapped: Mapping[str, Any]) -> list[_Declared]:
    """The pod sets of a wrapped object of a known kind."""
    spec, key = get_spec(wrapped), (wrapped.get("apiVersion"), wrapped.get("kind"))
    if key == ("batch/v1", "Job"):
        return [_Declared("template.spec.template", count_job_pods(spec), Labels(COMPLETION_INDEX))]
    if key == ("jobset.x-k8s.io/v1alpha2", "JobSet"):
        return list(_infer_job_set(spec))
    if key == ("kubeflow.org/v1", "PyTorchJob"):
        replicas, prefix = as_mapping(spec.get("pytorchReplicaSpecs")), "template.spec.pytorchReplicaSpecs"
        return [
            _Declared(f"{prefix}.{name}.template", read_count(each.get("replicas")), Labels(REPLICA_INDEX))
            for name in ("Master", "Worker")
            if "template" in (each := as_mapping(replicas.get(name)))
        ]
    if key == ("ray.io/v1", "RayCluster"):
        return list(_infer_ray(spec, "template.spec"))
    if key == ("ray.io/v1", "RayJob"):
        return list(_infer_ray(as_mapping(spec.get("rayClusterSpec")), "template.spec.rayClusterSpec"))
    if key == ("v1", "Pod"):
        return [_Declared("template", 1)]
    if key in (("apps/v1", "Deployment"), ("apps/v1", "StatefulSet")):
        return [_Declared("template.spec.template", read_count(spec.get("replicas")))]
    return []


def _infer_job_set(spec: Mapping[str, Any]) -> Iterator[_Declared]:
    for index, job in enumerate(map(as_mapping, as_list(spec.get("replicatedJobs")))):
        if "template" in job:
            replicas = read_count(job.get("replicas"))
            labels = Labels(COMPLETION_INDEX, JOB_INDEX, replicas)
            path = f"template.spec.replicatedJobs[{index}].template.spec.template"
            yield _Declared(path, replicas * count_job_pods(get_spec(job.get("template"))), labels)


def _infer_ray(cluster: Mapping[str, Any], prefix: str) -> Iterator[_Declared]:
    """The head and the workers. AppWrapper ignores `numOfHosts`."""
    yield _Declared(f"{prefix}.headGroupSpec.template", 1)
    for index, group in enumerate(map(as_mapping, as_list(cluster.get("workerGroupSpecs")))):
        if "template" in group:
            yield _Declared(f"{prefix}.workerGroupSpecs[{index}].template", read_count(group.get("replicas")))


_POD_FIELDS = (
    "nodeSelector",
    "nodeName",
    "affinity",
    "tolerations",
    "priorityClassName",
    "overhead",
    "topologySpreadConstraints",
)
_POD_DEFAULTS: Mapping[str, Any] = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "preemptionPolicy": "PreemptLowerPriority",
}
_CONTAINER_FIELDS = ("name", "image", "command", "args", "securityContext")
_CONTAINER_DEFAULTS = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}


def _copy_template(template: Mapping[str, Any]) -> dict[str, Any]:
    """Copy the fields of a template that AppWrapper passes on, with their defaults; it drops all others."""
    source = get_spec(template)
    spec = {name: source[name] for name in _POD_FIELDS if source.get(name)}
    spec |= {name: source.get(name) or default for name, default in _POD_DEFAULTS.items()}
    if source.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    for field in ("initContainers", "containers"):
        if containers := as_list(source.get(field)):
            spec[field] = [_copy_container(as_mapping(each)) for each in containers]
    metadata = as_mapping(template.get("metadata"))
    kept = {name: metadata[name] for name in ("labels", "annotations") if metadata.get(name)}
    return {"metadata": kept, "spec": spec} if kept else {"spec": spec}


def _copy_container(source: Mapping[str, Any]) -> dict[str, Any]:
    copied = {name: source[name] for name in _CONTAINER_FIELDS if source.get(name)}
    copied |= {name: source.get(name) or default for name, default in _CONTAINER_DEFAULTS.items()}
    copied["imagePullPolicy"] = source.get("imagePullPolicy") or _default_pull_policy(source.get("image"))
    resources = as_mapping(source.get("resources"))
    kept = {name: resources[name] for name in ("limits", "requests") if resources.get(name)}
    return {**copied, "resources": kept} if kept else copied


def _default_pull_policy(image: Any) -> str:
    if not isinstance(image, str) or find_image_error(image):
        return "IfNotPresent"
    name = parse_image_name(image)
    return "Always" if name.tag == "latest" or not (name.tag or name.digest) else "IfNotPresent"
