"""Pod sets of RayClusters, RayJobs and RayServices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.features.kueue.amounts import to_amount
from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.pod_sets.raw import RawPodSet, get_spec, make_pod_set, read_count
from jobgen.features.kueue.pod_sets.topology_request import Gates

_SUBMITTER_CONTAINER = "ray-job-submitter"
# What KubeRay gives to the containers that it adds.
_SUBMITTER_RESOURCES = {
    "limits": {"cpu": "1", "memory": "1Gi"},
    "requests": {"cpu": "500m", "memory": "200Mi"},
}
_AUTOSCALER_RESOURCES = {
    "limits": {"cpu": "500m", "memory": "512Mi"},
    "requests": {"cpu": "500m", "memory": "512Mi"},
}
# The pod that removes the data in Redis later runs in the place of the head.
_CLEANUP_REQUESTS = {"cpu": "200m", "memory": "256Mi"}
_FAULT_TOLERANCE = "ray.io/ft-enabled"


def list_ray_cluster(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod sets of a RayCluster: the head, then each group of workers."""
    return _list_cluster(get_spec(obj), obj, gates)


def list_ray_service(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod sets of a RayService: those of its cluster."""
    return _list_cluster(as_mapping(get_spec(obj).get("rayClusterConfig")), obj, gates)


def list_ray_job(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet] | None:
    """List the pod sets of a RayJob; None if it runs in an existing cluster, because Kueue does not manage it then."""
    spec = get_spec(obj)
    cluster = spec.get("rayClusterSpec")
    if not isinstance(cluster, dict):
        return None
    found = _list_cluster(cluster, obj, gates)
    mode = spec.get("submissionMode")
    if mode == "K8sJobMode":
        found.append(make_pod_set("submitter", 1, _find_submitter(spec, cluster), gates))
    elif mode == "SidecarMode":
        found[0] = _add_container(found[0], {"name": _SUBMITTER_CONTAINER, "resources": _SUBMITTER_RESOURCES})
    return found


_CLUSTER_FIELDS = {"RayJob": "rayClusterSpec", "RayService": "rayClusterConfig"}


def fill_ray_defaults(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fill in what the API server fills in of a new object, before Kueue counts its pods.

    A group of workers without `replicas` has none; KubeRay starts `minReplicas` of them nevertheless.
    """
    spec = get_spec(obj)
    field = _CLUSTER_FIELDS.get(str(obj.get("kind")))
    if field is None:
        return {**obj, "spec": _fill_groups(spec)}
    filled = {"submissionMode": "K8sJobMode", **spec} if obj.get("kind") == "RayJob" else {**spec}
    if isinstance(spec.get(field), dict):
        filled[field] = _fill_groups(spec[field])
    return {**obj, "spec": filled}


def _fill_groups(cluster: Mapping[str, Any]) -> Mapping[str, Any]:
    groups = cluster.get("workerGroupSpecs")
    if not isinstance(groups, list):
        return cluster
    return {**cluster, "workerGroupSpecs": [{"replicas": 0, **as_mapping(each)} for each in groups]}


def _list_cluster(cluster: Mapping[str, Any], obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    head = make_pod_set("head", 1, as_mapping(cluster.get("headGroupSpec")).get("template"), gates)
    if _is_fault_tolerant(cluster, obj):
        head = _raise_requests(head)
    if cluster.get("enableInTreeAutoscaling") is True:
        options = as_mapping(cluster.get("autoscalerOptions"))
        resources = options.get("resources")
        container = {"name": "autoscaler", "resources": _AUTOSCALER_RESOURCES if resources is None else resources}
        head = _add_container(head, container)
    workers = [
        make_pod_set(group.get("groupName"), _count_workers(group), group.get("template"), gates)
        for group in map(as_mapping, as_list(cluster.get("workerGroupSpecs")))
    ]
    return [head, *workers]


def _count_workers(group: Mapping[str, Any]) -> int:
    return read_count(group.get("replicas")) * max(read_count(group.get("numOfHosts")), 1)


def _is_fault_tolerant(cluster: Mapping[str, Any], obj: Mapping[str, Any]) -> bool:
    annotations = as_mapping(as_mapping(obj.get("metadata")).get("annotations"))
    is_annotated = str(annotations.get(_FAULT_TOLERANCE, "")).lower() == "true"
    return is_annotated or cluster.get("gcsFaultToleranceOptions") is not None


def _raise_requests(head: RawPodSet) -> RawPodSet:
    """Raise the requests of the first container to what the cleanup of Redis requests."""
    containers = as_list(get_spec(head["template"]).get("containers"))
    if not containers:
        return head
    first = as_mapping(containers[0])
    resources = as_mapping(first.get("resources"))
    requests = dict(as_mapping(resources.get("requests")))
    for name, least in _CLEANUP_REQUESTS.items():
        if to_amount(name, requests.get(name)) < to_amount(name, least):
            requests[name] = least
    raised = {**first, "resources": {**resources, "requests": requests}}
    return _with_containers(head, [raised, *containers[1:]])


def _add_container(head: RawPodSet, container: Mapping[str, Any]) -> RawPodSet:
    return _with_containers(head, [*as_list(get_spec(head["template"]).get("containers")), container])


def _with_containers(head: RawPodSet, containers: list[Any]) -> RawPodSet:
    template = head["template"]
    return {**head, "template": {**template, "spec": {**get_spec(template), "containers": containers}}}


def _find_submitter(spec: Mapping[str, Any], cluster: Mapping[str, Any]) -> Mapping[str, Any]:
    """The template of the pod that submits a job; by default it runs the image of the head."""
    template = spec.get("submitterPodTemplate")
    if isinstance(template, dict):
        return template
    head = get_spec(as_mapping(cluster.get("headGroupSpec")).get("template"))
    image = next((as_mapping(each).get("image") for each in as_list(head.get("containers"))), None)
    container = {"name": _SUBMITTER_CONTAINER, "resources": _SUBMITTER_RESOURCES}
    return {"spec": {"containers": [{**container, "image": image} if image else container], "restartPolicy": "Never"}}
