"""Pod sets of Ray, Spark and AppWrapper, whose operators complete the templates of pods or write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.quota import to_amount
from jobgen.features.kueue.raw_pod_set import (
    Gates,
    Labels,
    RawPodSet,
    get_spec,
    make_found_pod_set,
    make_pod_set,
    number_pods,
    parse_integer,
    read_count,
)
from jobgen.k8s.images import find_image_error, parse_image_name
from jobgen.k8s.nodes import get_path
from jobgen.k8s.object_paths import find_wrapped_pods, follow_path
from jobgen.k8s.pod_sets import POD_SETS, RAY_CLUSTERS, find_pods

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
    """List the pod sets of a RayCluster or a RayService: the head, then each group of workers."""
    kind = str(obj.get("kind"))
    cluster = as_mapping(get_path(obj, *RAY_CLUSTERS[kind]))
    # The submitter of a RayJob is not part of its cluster.
    head, *workers = find_pods(obj, POD_SETS["ray.io", kind][:2])
    made = make_found_pod_set(head, gates)
    if _is_fault_tolerant(cluster, obj):
        made = _raise_requests(made)
    if cluster.get("enableInTreeAutoscaling") is True:
        resources = as_mapping(cluster.get("autoscalerOptions")).get("resources")
        container = {"name": "autoscaler", "resources": _AUTOSCALER_RESOURCES if resources is None else resources}
        made = _add_container(made, container)
    found = [made]
    for group in workers:
        # Kueue ignores the bounds of the number of workers.
        hosts = max(read_count(group.item.get("numOfHosts")), 1)
        found.append(make_found_pod_set(group, gates, count=read_count(group.item.get("replicas")) * hosts))
    return found


def list_ray_job(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet] | None:
    """List the pod sets of a RayJob; None if it runs in an existing cluster, because Kueue does not manage it then."""
    spec = get_spec(obj)
    cluster = spec.get("rayClusterSpec")
    if not isinstance(cluster, dict):
        return None
    found = list_ray_cluster(obj, gates)
    mode = spec.get("submissionMode")
    if mode == "K8sJobMode":
        found.append(make_pod_set("submitter", 1, _find_submitter(spec, cluster), gates))
    elif mode == "SidecarMode":
        found[0] = _add_container(found[0], {"name": _SUBMITTER_CONTAINER, "resources": _SUBMITTER_RESOURCES})
    return found


def fill_ray_defaults(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fill in what the API server fills in of a new object, before Kueue counts its pods.

    A group of workers without `replicas` has none; KubeRay starts `minReplicas` of them nevertheless.
    """
    spec = get_spec(obj)
    _, *path = RAY_CLUSTERS.get(str(obj.get("kind")), ("spec",))
    if not path:
        return {**obj, "spec": _fill_groups(spec)}
    (field,) = path
    filled = {"submissionMode": "K8sJobMode", **spec} if obj.get("kind") == "RayJob" else {**spec}
    if isinstance(spec.get(field), dict):
        filled[field] = _fill_groups(spec[field])
    return {**obj, "spec": filled}


def _fill_groups(cluster: Mapping[str, Any]) -> Mapping[str, Any]:
    groups = cluster.get("workerGroupSpecs")
    if not isinstance(groups, list):
        return cluster
    return {**cluster, "workerGroupSpecs": [{"replicas": 0, **as_mapping(each)} for each in groups]}


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


# Spark writes memory as Java does: `512m` is 512 MiB.
_MEMORY_UNITS = {
    "kb": "Ki", "mb": "Mi", "gb": "Gi", "tb": "Ti", "pb": "Pi", "k": "Ki", "m": "Mi", "g": "Gi", "t": "Ti", "p": "Pi"
}  # fmt: skip


def list_spark_application(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod sets of a SparkApplication."""
    spec = get_spec(obj)
    driver, executor = (as_mapping(spec.get(name)) for name in ("driver", "executor"))
    volumes = {str(each.get("name")): each for each in map(as_mapping, as_list(spec.get("volumes")))}
    return [
        make_pod_set("driver", 1, _build_template(driver, "spark-kubernetes-driver", volumes), gates),
        make_pod_set(
            "executor",
            read_count(executor.get("instances"), 0),
            _build_template(executor, "spark-kubernetes-executor", volumes),
            gates,
        ),
    ]


def _build_template(role: Mapping[str, Any], container: str, volumes: Mapping[str, Any]) -> dict[str, Any]:
    """Build the template of a role from the fields that concern scheduling."""
    spec: dict[str, Any] = {
        name: role[name] for name in ("nodeSelector", "affinity", "tolerations", "priorityClassName") if role.get(name)
    }
    main: dict[str, Any] = {"name": container}
    if resources := _build_resources(role):
        main["resources"] = resources
    # Spark itself mounts its local folders.
    written = ((str(each.get("name")), each) for each in map(as_mapping, as_list(role.get("volumeMounts"))))
    if mounts := [each for name, each in written if name in volumes and not name.startswith("spark-local-dir-")]:
        main["volumeMounts"] = mounts
        spec["volumes"] = [volumes[name] for name in dict.fromkeys(str(each.get("name")) for each in mounts)]
    spec["containers"] = [main, *_without_duplicates(role.get("sidecars"))]
    if init := _without_duplicates(role.get("initContainers")):
        spec["initContainers"] = init
    base = as_mapping(as_mapping(role.get("template")).get("metadata"))
    metadata: dict[str, Any] = dict(base)
    for field in ("labels", "annotations"):
        if merged := {**as_mapping(base.get(field)), **as_mapping(role.get(field))}:
            metadata[field] = merged
    return {"metadata": metadata, "spec": spec} if metadata else {"spec": spec}


def _without_duplicates(containers: Any) -> list[Any]:
    found: dict[tuple[str, str], Any] = {}
    for each in map(as_mapping, as_list(containers)):
        found.setdefault((str(each.get("name")), str(each.get("image"))), each)
    return list(found.values())


def _build_resources(role: Mapping[str, Any]) -> dict[str, Any]:
    requests = {"cpu": role.get("coreRequest"), "memory": _to_kubernetes_memory(role.get("memory"))}
    limits: dict[str, Any] = {"cpu": role.get("coreLimit"), "memory": _to_kubernetes_memory(role.get("memoryLimit"))}
    gpu = as_mapping(role.get("gpu"))
    if gpu.get("name") and read_count(gpu.get("quantity"), 0):
        limits[str(gpu["name"])] = str(gpu["quantity"])
    made = {"limits": limits, "requests": requests}
    kept = {name: {key: value for key, value in each.items() if value is not None} for name, each in made.items()}
    return {name: each for name, each in kept.items() if each}


def _to_kubernetes_memory(memory: Any) -> str | None:
    """Convert `512m` to `512Mi`; what already is a quantity stays."""
    if memory is None:
        return None
    text = str(memory).strip().lower()
    for suffix, unit in _MEMORY_UNITS.items():
        if text.endswith(suffix) and text[: -len(suffix)].isdigit():
            return text[: -len(suffix)] + unit
    return str(memory)


_ANNOTATION = "workload.codeflare.dev.appwrapper/tas-"


def list_app_wrapper(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod sets of an AppWrapper, numbered in the order of its components.

    They are those that a component declares, or those that AppWrapper finds in an object of a kind that it knows.
    """
    name = as_mapping(obj.get("metadata")).get("name", "")
    components = [as_mapping(each) for each in as_list(get_spec(obj).get("components"))]
    statuses = as_list(as_mapping(obj.get("status")).get("componentStatus"))
    known = map(as_mapping, statuses) if len(statuses) == len(components) else iter(components)
    found: list[RawPodSet] = []
    for component, holder in zip(components, known, strict=True):
        wrapped = as_mapping(component.get("template"))
        declared = [_read_declared(each) for each in map(as_mapping, as_list(holder.get("podSets")))]
        inferred = [(each.path, read_count(each.total), number_pods(each.found)) for each in find_wrapped_pods(wrapped)]
        for path, count, labels in declared or inferred:
            template = follow_path(wrapped, path)
            if isinstance(as_mapping(template).get("spec"), dict):
                copied = _copy_template(as_mapping(template))
                found.append(make_pod_set(f"{name}-{len(found)}", count, copied, gates, labels))
    return found


def _read_declared(raw: Mapping[str, Any]) -> tuple[str, int, Labels]:
    """Return the path, the number and the labels of the pods in a declared pod set."""
    annotations = as_mapping(raw.get("annotations"))
    labels = Labels(
        str(annotations.get(_ANNOTATION + "pod-index-label", "")),
        str(annotations.get(_ANNOTATION + "sub-group-index-label", "")),
        parse_integer(annotations.get(_ANNOTATION + "sub-group-count")),
    )
    return str(raw.get("path", "")), read_count(raw.get("replicas")), labels


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
