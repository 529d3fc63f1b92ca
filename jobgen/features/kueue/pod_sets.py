"""From a job object to the pod sets of its Workload, as the integrations of Kueue make them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.quota import to_amount
from jobgen.k8s.images import find_image_error, parse_image_name
from jobgen.k8s.nodes import get_path
from jobgen.k8s.object_paths import find_wrapped_pods, follow_path
from jobgen.k8s.workloads import POD_SETS, RAY_CLUSTERS, REPLICA_TYPES, FoundPods, count_pod_set, find_pods
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

# Raw pod sets: plain mappings, as in the spec of a Workload, with the topology request of their pods.

RawPodSet = dict[str, Any]
"""A pod set as in the spec of a Workload: name, count, template; perhaps minCount and topologyRequest."""

MAIN: Final = "main"
"""The name of the only pod set of a workload."""
MAX_COUNT: Final = 2**31 - 1
"""The most pods of a pod set; more are counted as one more."""
DOMAIN: Final = "kueue.x-k8s.io/"
_REQUIRED = DOMAIN + "podset-required-topology"
_PREFERRED = DOMAIN + "podset-preferred-topology"
_UNCONSTRAINED = DOMAIN + "podset-unconstrained-topology"
_SLICE_LEVEL = DOMAIN + "podset-slice-required-topology"
_SLICE_SIZE = DOMAIN + "podset-slice-size"
_SLICE_LAYERS = DOMAIN + "podset-slice-required-topology-constraints"
_GROUP = DOMAIN + "podset-group-name"

# What Go's strconv.ParseBool accepts.
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
_INTEGER = lazy_pattern(r"[+-]?[0-9]{1,10}\Z")


class Labels(NamedTuple):
    """The labels by which the pods of a kind are numbered."""

    pod_index: str = ""
    sub_group_index: str = ""
    sub_group_count: int | None = None


NO_LABELS = Labels()


class Gates(NamedTuple):
    """The feature gates that change pod sets."""

    topology_aware: bool = True
    multi_layer: bool = True
    unknown: frozenset[str] = frozenset()
    """Annotations that this version of Kueue does not know."""


def parse_gates(gates: Mapping[str, bool]) -> Gates:
    """Read feature gates; those that are missing have the defaults of 0.19."""
    return Gates(gates.get("TopologyAwareScheduling", True), gates.get("TASMultiLayerTopology", True))


def parse_integer(text: Any) -> int | None:
    """Parse an integer as Go does; None if it is not one."""
    return int(text) if isinstance(text, str) and _INTEGER.match(text) else None


def build_topology_request(metadata: Any, labels: Labels, gates: Gates) -> dict[str, Any] | None:
    """Build the topology request of pods with this metadata; None if they have none.

    Kinds that number their pods always have a request; it asks for a placement only if an annotation does. An
    annotation with an invalid value is ignored, because Kueue rejects the job.
    """
    if not gates.topology_aware:
        return None
    annotations = as_mapping(as_mapping(metadata).get("annotations"))
    if gates.unknown:
        annotations = {name: value for name, value in annotations.items() if name not in gates.unknown}
    unconstrained = annotations.get(_UNCONSTRAINED)
    request: dict[str, Any] = {}
    if _REQUIRED in annotations:
        request["required"] = annotations[_REQUIRED]
    elif _PREFERRED in annotations:
        request["preferred"] = annotations[_PREFERRED]
    elif isinstance(unconstrained, str) and unconstrained in _BOOLEANS:
        request["unconstrained"] = _BOOLEANS[unconstrained]
    has_slices = _SLICE_LAYERS in annotations or (_SLICE_LEVEL in annotations and _SLICE_SIZE in annotations)
    if not request and not has_slices and labels == NO_LABELS:
        return None
    request |= _find_slices(annotations, gates)
    request |= {"podIndexLabel": labels.pod_index} if labels.pod_index else {}
    request |= {"subGroupIndexLabel": labels.sub_group_index} if labels.sub_group_index else {}
    request |= {"subGroupCount": labels.sub_group_count} if labels.sub_group_count is not None else {}
    if _GROUP in annotations and ("required" in request or "preferred" in request):
        request["podSetGroupName"] = annotations[_GROUP]
    return request


def _find_slices(annotations: Mapping[str, Any], gates: Gates) -> dict[str, Any]:
    if gates.multi_layer and _SLICE_LAYERS in annotations:
        try:
            layers = [each for each in as_list(json.loads(annotations[_SLICE_LAYERS])) if isinstance(each, dict)]
        except (TypeError, ValueError, RecursionError):
            layers = []
        return {"podsetSliceRequiredTopologyConstraints": layers} if 0 < len(layers) <= 3 else {}
    size = parse_integer(annotations.get(_SLICE_SIZE))
    if size is None or _SLICE_LEVEL not in annotations:
        return {}
    return {"podSetSliceRequiredTopology": annotations[_SLICE_LEVEL], "podSetSliceSize": size}


def get_spec(obj: Any) -> Mapping[str, Any]:
    """Return the spec of an object or template."""
    return as_mapping(as_mapping(obj).get("spec"))


def read_count(value: Any, default: int = 1) -> int:
    """Read a number of pods; what is missing or not an integer is the default."""
    return min(max(value, 0), MAX_COUNT + 1) if type(value) is int else default


def make_pod_set(name: Any, count: int, template: Any, gates: Gates, labels: Labels = NO_LABELS) -> RawPodSet:
    """Make a pod set of a template. Names of pod sets are in lower case."""
    found = as_mapping(template)
    request = build_topology_request(found.get("metadata"), labels, gates)
    made: RawPodSet = {"name": str(name or "").lower(), "count": count, "template": found}
    return made if request is None else {**made, "topologyRequest": request}


def make_found_pod_set(found: FoundPods, gates: Gates, *, name: str = "", count: int | None = None) -> RawPodSet:
    """Make a pod set of the pods that an object describes; `name` and `count` override what it says."""
    name = name or (found.role if found.pod_set.role else MAIN)
    wanted = min(found.total if count is None else count, MAX_COUNT + 1)
    return make_pod_set(name, wanted, found.template, gates, number_pods(found))


def number_pods(found: FoundPods) -> Labels:
    """Return the labels that number the pods of an object."""
    pod_index, sub_group_index = (*found.pod_set.index_labels, "", "")[:2]
    return Labels(pod_index, sub_group_index, read_count(found.item.get("replicas")) if sub_group_index else None)


# Pod sets of Ray, Spark and AppWrapper, whose operators complete the templates of pods or write them.

_SUBMITTER_CONTAINER = "ray-job-submitter"
# What KubeRay gives to the containers that it adds.
_SUBMITTER_RESOURCES = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "200Mi"}}
_AUTOSCALER_RESOURCES = {name: {"cpu": "500m", "memory": "512Mi"} for name in ("limits", "requests")}
# The pod that removes the data in Redis later runs in the place of the head.
_CLEANUP_REQUESTS = {"cpu": "200m", "memory": "256Mi"}


def list_ray_cluster(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod sets of a RayCluster or a RayService: the head, then each group of workers."""
    kind = str(obj.get("kind"))
    cluster = as_mapping(get_path(obj, *RAY_CLUSTERS[kind]))
    # The submitter of a RayJob is not part of its cluster.
    head, *workers = find_pods(obj, POD_SETS["ray.io", kind][:2])
    made = make_found_pod_set(head, gates)
    is_fault_tolerant = str(get_path(obj, "metadata", "annotations", "ray.io/ft-enabled")).lower() == "true"
    if is_fault_tolerant or cluster.get("gcsFaultToleranceOptions") is not None:
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

    def fill_groups(cluster: Mapping[str, Any]) -> Mapping[str, Any]:
        groups = cluster.get("workerGroupSpecs")
        if not isinstance(groups, list):
            return cluster
        return {**cluster, "workerGroupSpecs": [{"replicas": 0, **as_mapping(each)} for each in groups]}

    spec = get_spec(obj)
    _, *path = RAY_CLUSTERS.get(str(obj.get("kind")), ("spec",))
    if not path:
        return {**obj, "spec": fill_groups(spec)}
    (field,) = path
    filled = {"submissionMode": "K8sJobMode", **spec} if obj.get("kind") == "RayJob" else {**spec}
    if isinstance(spec.get(field), dict):
        filled[field] = fill_groups(spec[field])
    return {**obj, "spec": filled}


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
    pods = (("driver", driver, 1), ("executor", executor, read_count(executor.get("instances"), 0)))
    return [
        make_pod_set(name, count, _build_template(role, f"spark-kubernetes-{name}", volumes), gates)
        for name, role, count in pods
    ]


def _build_template(role: Mapping[str, Any], container: str, volumes: Mapping[str, Any]) -> dict[str, Any]:
    """Build the template of a role from the fields that concern scheduling."""
    spec: dict[str, Any] = {
        name: role[name] for name in ("nodeSelector", "affinity", "tolerations", "priorityClassName") if role.get(name)
    }
    limits = {"cpu": role.get("coreLimit"), "memory": _to_kubernetes_memory(role.get("memoryLimit"))}
    requests = {"cpu": role.get("coreRequest"), "memory": _to_kubernetes_memory(role.get("memory"))}
    gpu = as_mapping(role.get("gpu"))
    if gpu.get("name") and read_count(gpu.get("quantity"), 0):
        limits[str(gpu["name"])] = str(gpu["quantity"])
    resources = {
        name: {key: value for key, value in each.items() if value is not None}
        for name, each in {"limits": limits, "requests": requests}.items()
        if any(value is not None for value in each.values())
    }
    main: dict[str, Any] = {"name": container, "resources": resources} if resources else {"name": container}
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


def _to_kubernetes_memory(memory: Any) -> str | None:
    """Convert `512m` to `512Mi`; what already is a quantity stays."""
    if memory is None:
        return None
    text = str(memory).strip().lower()
    for suffix, unit in _MEMORY_UNITS.items():
        if text.endswith(suffix) and text[: -len(suffix)].isdigit():
            return text[: -len(suffix)] + unit
    return str(memory)


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
        declared = [
            (str(each.get("path", "")), each.get("replicas"), _read_labels(each))
            for each in map(as_mapping, as_list(holder.get("podSets")))
        ]
        inferred = [(each.path, each.total, number_pods(each.found)) for each in find_wrapped_pods(wrapped)]
        for path, count, labels in declared or inferred:
            template = follow_path(wrapped, path)
            if isinstance(as_mapping(template).get("spec"), dict):
                copied = _copy_template(as_mapping(template))
                found.append(make_pod_set(f"{name}-{len(found)}", read_count(count), copied, gates, labels))
    return found


def _read_labels(raw: Mapping[str, Any]) -> Labels:
    annotations, prefix = as_mapping(raw.get("annotations")), "workload.codeflare.dev.appwrapper/tas-"
    return Labels(
        str(annotations.get(f"{prefix}pod-index-label", "")),
        str(annotations.get(f"{prefix}sub-group-index-label", "")),
        parse_integer(annotations.get(f"{prefix}sub-group-count")),
    )


_POD_FIELDS = """nodeSelector nodeName affinity tolerations priorityClassName overhead
    topologySpreadConstraints""".split()
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
            spec[field] = list(map(_copy_container, map(as_mapping, containers)))
    metadata = as_mapping(template.get("metadata"))
    kept = {name: metadata[name] for name in ("labels", "annotations") if metadata.get(name)}
    return {"metadata": kept, "spec": spec} if kept else {"spec": spec}


def _copy_container(source: Mapping[str, Any]) -> dict[str, Any]:
    copied = {name: source[name] for name in _CONTAINER_FIELDS if source.get(name)}
    copied |= {name: source.get(name) or default for name, default in _CONTAINER_DEFAULTS.items()}
    policy, image = "IfNotPresent", source.get("image")
    if isinstance(image, str) and not find_image_error(image):
        name = parse_image_name(image)
        policy = "Always" if name.tag == "latest" or not (name.tag or name.digest) else policy
    copied["imagePullPolicy"] = source.get("imagePullPolicy") or policy
    resources = as_mapping(source.get("resources"))
    kept = {name: resources[name] for name in ("limits", "requests") if resources.get(name)}
    return {**copied, "resources": kept} if kept else copied


ALL_GATES: Final = Gates()
# Labels that the Job controller sets.
_GROUP_INDEX = Labels(DOMAIN + "pod-group-pod-index")
_SHAPE = """nodeSelector affinity tolerations runtimeClassName priority topologySpreadConstraints overhead
    resourceClaims""".split()


def _list_job_set(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod sets of a JobSet: one for each replicated job."""
    return [make_found_pod_set(found, gates) for found in find_pods(obj, POD_SETS["jobset.x-k8s.io", "JobSet"])]


def _list_replica_types(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod sets of a kind with a map of replicas; types that are missing are skipped."""
    pod_sets = REPLICA_TYPES["kubeflow.org", str(obj.get("kind"))]
    return [make_found_pod_set(found, gates) for found in find_pods(obj, pod_sets) if found.item]


def _list_job(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod set of a Job, without the labels that the Job controller sets."""
    (found,) = find_pods(obj, POD_SETS["batch", "Job"])
    made = make_found_pod_set(found, gates)
    metadata = as_mapping(made["template"].get("metadata"))
    labels = as_mapping(metadata.get("labels"))
    managed = {"job-name", "controller-uid", "batch.kubernetes.io/controller-uid"}
    if labels.keys() & managed:
        kept = {name: value for name, value in labels.items() if name not in managed}
        rest = {name: value for name, value in metadata.items() if name != "labels"}
        made["template"] = {**made["template"], "metadata": {**rest, "labels": kept} if kept else rest}
    least = parse_integer(get_path(obj, "metadata", "annotations", DOMAIN + "job-min-parallelism"))
    return [made if least is None else {**made, "minCount": least}]


def get_group_name(pod: Mapping[str, Any]) -> str:
    """Return the group of a pod; empty if it is alone."""
    metadata = as_mapping(pod.get("metadata"))
    for field in ("annotations", "labels"):
        found = as_mapping(metadata.get(field)).get(DOMAIN + "pod-group-name")
        if isinstance(found, str) and found:
            return found
    return ""


def _list_group(pods: Sequence[Mapping[str, Any]], gates: Gates) -> list[RawPodSet]:
    """List the pod sets of a group of pods: one for each role, that is for each shape of pods."""
    annotations = as_mapping(as_mapping(pods[0].get("metadata")).get("annotations"))
    if annotations.get(DOMAIN + "pod-group-fast-admission") == "true":
        total = parse_integer(annotations.get(DOMAIN + "pod-group-total-count"))
        return [_make_pod(_find_role(pods[0]), len(pods) if total is None else total, pods[0], gates)]
    by_role: dict[str, list[Mapping[str, Any]]] = {}
    for pod in pods:
        by_role.setdefault(_find_role(pod), []).append(pod)
    return [_make_pod(role, len(members), members[0], gates) for role, members in sorted(by_role.items())]


def _make_pod(name: str, count: int, pod: Any, gates: Gates) -> RawPodSet:
    """Make a pod set of a pod. Its metadata counts, but is not part of the template."""
    made = make_pod_set(name, count, pod, gates, _GROUP_INDEX)
    return {**made, "template": {"spec": get_spec(pod)}}


def _find_role(pod: Mapping[str, Any]) -> str:
    """Return the role of a pod in its group: pods with the same requests and constraints have the same one."""
    named = as_mapping(as_mapping(pod.get("metadata")).get("annotations")).get(DOMAIN + "role-hash")
    if isinstance(named, str):
        return named
    spec = get_spec(pod)
    shape = {name: spec.get(name) for name in _SHAPE}
    for field in ("initContainers", "containers"):
        containers = map(as_mapping, as_list(spec.get(field)))
        shape[field] = [(as_mapping(each.get("resources")).get("requests"), each.get("ports")) for each in containers]
    text = json.dumps({**shape, "resources": spec.get("resources")}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _list_stateful_set(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod set of a StatefulSet: all of its pods are one group."""
    spec, index = get_spec(obj), Labels("apps.kubernetes.io/pod-index")
    made = make_pod_set(MAIN, read_count(spec.get("replicas")), spec.get("template"), gates, index)
    return [{**made, "template": {"spec": get_spec(made["template"])}}]


def _list_leader_worker_set(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod sets of one replica of a LeaderWorkerSet: each of its replicas is a workload."""
    leader, worker = find_pods(obj, POD_SETS["leaderworkerset.x-k8s.io", "LeaderWorkerSet"])
    has_leader = isinstance(leader.template, dict)
    made = [make_found_pod_set(leader, gates, count=1)] if has_leader else []
    count = count_pod_set(worker.pod_set, worker.item, is_one_group=True)
    made.append(make_found_pod_set(worker, gates, name="" if has_leader else MAIN, count=count))
    domain = "leaderworkerset.sigs.k8s.io"
    for each in made:
        # Without the labels and annotations that the controller sets.
        metadata = kept = as_mapping(each["template"].get("metadata"))
        for field in ("labels", "annotations"):
            if isinstance(values := metadata.get(field), dict):
                own = {key: values[key] for key in values if key == f"{domain}/name" or not key.startswith(domain)}
                kept = {**kept, field: own}
        if kept != metadata:
            each["template"] = {**each["template"], "metadata": kept}
    return made


# By API group and version, and kind. Of an MPIJob, Kueue knows only the version of the MPI Operator.
_KINDS: Final[Mapping[tuple[str, str], Callable[[Mapping[str, Any], Gates], list[RawPodSet] | None]]] = {
    # Each pod of a Deployment is a workload.
    ("apps/v1", "Deployment"): lambda obj, gates: [_make_pod(MAIN, 1, get_spec(obj).get("template"), gates)],
    ("apps/v1", "StatefulSet"): _list_stateful_set,
    ("batch/v1", "Job"): _list_job,
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): _list_job_set,
    **dict.fromkeys(
        (("kubeflow.org/v1", kind) for kind in ("JAXJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")),
        _list_replica_types,
    ),
    ("kubeflow.org/v2beta1", "MPIJob"): _list_replica_types,
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): _list_leader_worker_set,
    ("ray.io/v1", "RayCluster"): list_ray_cluster,
    ("ray.io/v1", "RayJob"): list_ray_job,
    ("ray.io/v1", "RayService"): list_ray_cluster,
    ("sparkoperator.k8s.io/v1beta2", "SparkApplication"): list_spark_application,
    ("v1", "Pod"): lambda obj, gates: [_make_pod(MAIN, 1, obj, gates)],
    ("workload.codeflare.dev/v1beta2", "AppWrapper"): list_app_wrapper,
}
_TRAIN_JOB = ("trainer.kubeflow.org/v1alpha1", "TrainJob")
# Kinds of which each replica is a workload.
_BY_REPLICA = frozenset((("apps/v1", "Deployment"), ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")))


def list_pod_sets(
    obj: Mapping[str, Any],
    gates: Gates = ALL_GATES,
    *,
    job_set: Mapping[str, Any] | None = None,
    members: Sequence[Mapping[str, Any]] = (),
) -> list[RawPodSet] | None:
    """List the pod sets of a job object, as in the spec of a Workload; None if Kueue has no integration for it.

    `job_set` is the JobSet that a TrainJob expands to; without it the TrainJob has no pod sets. `members` are all pods
    of the group that a Pod belongs to. Of a kind with one workload for each replica, the pod sets are those of one
    replica; `count_workloads` returns how many there are.
    """
    key = _find_key(obj)
    if key == _TRAIN_JOB:
        return [] if job_set is None else _list_job_set(job_set, gates)
    if members and key == ("v1", "Pod"):
        return _list_group(members, gates)
    found = _KINDS.get(key)
    return None if found is None else found(obj, gates)


def fill_defaults(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fill in what the API server fills in of a new job and what changes its pod sets.

    Most kinds have the same defaults in their integration; Ray does not.
    """
    return fill_ray_defaults(obj) if str(obj.get("apiVersion")) == "ray.io/v1" else obj


def count_workloads(obj: Mapping[str, Any]) -> int:
    """Return how many workloads of the same shape an object makes."""
    return read_count(get_spec(obj).get("replicas")) if _find_key(obj) in _BY_REPLICA else 1


def _find_key(obj: Mapping[str, Any]) -> tuple[str, str]:
    return str(obj.get("apiVersion")), str(obj.get("kind"))
