"""The pods of a RayJob and of a RayCluster: the head, the workers of each group, and the pod that submits the job.

Source: ray-project/kuberay 1.6, ray-operator/controllers/ray/common (pod.go, job.go, service.go), rayjob_controller.go
and utils/util.go. Fault tolerance of the GCS and authentication by tokens are not covered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from jobgen.features.convert.operators.created import (
    RANDOM,
    Created,
    CreatedObject,
    CreatedPod,
    Fields,
    Restarts,
    append,
    as_count,
    as_fields,
    as_items,
    as_string,
    edit_containers,
    edit_first_container,
    field_variable,
    get_fields,
    get_name,
    list_containers,
    list_indexes,
    read_texts,
    variable,
)
from jobgen.features.convert.operators.jobset import list_job_pods
from jobgen.k8s.workloads import POD_SETS, count_pod_set
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import to_milli
from jobgen.spec.overlay import Cluster

_METRICS_PORT, _AGENT_PORT, _GCS_PORT = 8080, 52365, 6379
_DEFAULT_PORTS = {"client": 10001, "gcs-server": _GCS_PORT, "dashboard": 8265, "metrics": _METRICS_PORT, "serve": 8000}
_SHELL = ["/bin/bash", "-c", "--"]
_VALUE_OPTIONS = ("log-color", "include-dashboard")
_CUSTOM_DEVICES = {"aws.amazon.com/neuroncore": "neuron_cores", "google.com/tpu": "TPU"}
_GPU = re.compile(r"gpu$|nvidia\.com/mig-\d+g\.\d+gb$")
_WAIT = {"cpu": "200m", "memory": "256Mi"}
_AUTOSCALER = {"cpu": "500m", "memory": "512Mi"}


class RayNode(NamedTuple):
    """A group of pods of a cluster."""

    is_head: bool
    group: Fields
    head: Fields
    """The group of the head."""
    cluster: Fields
    """The spec of the cluster."""
    address: str
    """The DNS name of the head."""
    creator: str

    @property
    def head_port(self) -> str:
        """The port by which workers reach the head."""
        return _text(get_fields(self.head, "rayStartParams").get("port")) or str(_GCS_PORT)

    @property
    def autoscales(self) -> bool:
        """Return True if the head has an autoscaler."""
        return self.cluster.get("enableInTreeAutoscaling") is True

    @property
    def version_two(self) -> bool:
        """Return True if the autoscaler is of version 2."""
        return self.autoscales and get_fields(self.cluster, "autoscalerOptions").get("version") == "v2"


def complete_pod(node: RayNode, spec: Fields) -> Fields:
    """Return the pod spec with all that KubeRay adds."""
    containers = list(list_containers(spec))
    if not containers:
        return spec
    command = _make_start_command(node, containers[0])
    if not node.is_head:
        spec = append(spec, "initContainers", [_make_waiting_container(node, containers[0])])
    elif node.autoscales:
        spec = append(spec, "containers", [_make_autoscaler(node, containers[0])])
        if not spec.get("serviceAccountName"):
            spec = {**spec, "serviceAccountName": node.address.partition("-head-svc.")[0]}
    if node.version_two:
        spec = {**spec, "restartPolicy": "Never"}
    spec = edit_containers(spec, lambda each: append(each, "env", _list_addresses(node)), field="initContainers")
    spec = _add_memory(node, spec, containers[0])
    return edit_first_container(spec, lambda each: _complete_container(node, each, command))


def _complete_container(node: RayNode, container: Fields, command: str) -> Fields:
    words = [*as_items(container.get("command")), *as_items(container.get("args"))]
    own = "".join(f" {word} " for word in words)
    if "ray start" not in own:
        generated = f"ulimit -n 65536; {command}"
        container = {**container, "command": _SHELL, "args": [f"{own} && {generated}" if own else generated]}
    if not any(as_fields(port).get("name") == "metrics" for port in as_items(container.get("ports"))):
        container = append(container, "ports", [{"name": "metrics", "containerPort": _METRICS_PORT}])
    known = {as_string(as_fields(entry).get("name")) for entry in as_items(container.get("env"))}
    entries = [entry for entry, always in _list_variables(node, command) if always or entry["name"] not in known]
    return _add_probes(node, append(container, "env", entries))


def _list_addresses(node: RayNode) -> list[Fields]:
    return [variable("FQ_RAY_IP", node.address), variable("RAY_IP", node.address.partition(".")[0])]


def _list_variables(node: RayNode, command: str) -> Iterator[tuple[Fields, bool]]:
    """Yield the variables of the container of Ray, and whether they are set even if users set them."""
    if node.version_two and node.is_head:
        yield variable("RAY_enable_autoscaler_v2", "true"), True
    if not node.is_head:
        yield from ((entry, True) for entry in _list_addresses(node))
    yield field_variable("RAY_CLUSTER_NAME", "metadata.labels['ray.io/cluster']"), True
    yield field_variable("RAY_CLUSTER_NAMESPACE", "metadata.namespace"), True
    yield field_variable("RAY_CLOUD_INSTANCE_ID", "metadata.name"), True
    yield field_variable("RAY_NODE_TYPE_NAME", "metadata.labels['ray.io/group']"), True
    yield variable("KUBERAY_GEN_RAY_START_CMD", command), True
    yield variable("RAY_PORT", node.head_port), False
    address = "127.0.0.1" if node.is_head else node.address
    yield variable("RAY_ADDRESS", f"{address}:{node.head_port}"), False
    yield variable("RAY_USAGE_STATS_KUBERAY_IN_USE", 1), False
    if node.is_head:
        yield variable("RAY_USAGE_STATS_EXTRA_TAGS", f"kuberay_version=v1.6.0;kuberay_crd={node.creator}"), True
    yield variable("RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", 1), False


def _make_start_command(node: RayNode, container: Fields) -> str:
    """Return the command `ray start` with all its options, in the order of their names."""
    options = {str(name): _text(value) for name, value in get_fields(node.group, "rayStartParams").items()}
    if not node.is_head:
        options.setdefault("address", f"{node.address}:{node.head_port}")
    else:
        options.setdefault("dashboard-host", "0.0.0.0")  # noqa: S104
        if node.autoscales:
            options["no-monitor"] = "true"
    options.setdefault("metrics-export-port", str(_METRICS_PORT))
    options["block"] = "true"
    options.setdefault("dashboard-agent-listen-port", str(_AGENT_PORT))
    for name, value in _list_amounts(container):
        options.setdefault(name, value)
    flags = "".join(_format_option(name, value) for name, value in sorted(options.items()))
    return f"ray start {'--head ' if node.is_head else ''}{flags}"


def _format_option(name: str, value: str) -> str:
    if value.lower() in ("true", "false") and name not in _VALUE_OPTIONS:
        return f" --{name} " if value.lower() == "true" else ""
    return f" --{name}={value} "


def _list_amounts(container: Fields) -> Iterator[tuple[str, str]]:
    """Yield the options for the resources of a container."""
    limits = get_fields(container, "resources", "limits")
    requests = get_fields(container, "resources", "requests")
    if cpus := _round_up(limits.get("cpu")) or _round_up(requests.get("cpu")):
        yield "num-cpus", str(cpus)
    if memory := _round_up(limits.get("memory")):
        yield "memory", str(memory)
    for name in sorted(map(str, limits)):
        count = _round_up(limits.get(name))
        if count and _GPU.search(name):
            yield "num-gpus", str(count)
        if count and name in _CUSTOM_DEVICES:
            yield "resources", f"'{json.dumps({_CUSTOM_DEVICES[name]: count}, separators=(',', ':'))}'"


def _round_up(amount: Any) -> int:
    return -(-(to_milli(amount) or 0) // 1000)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value) if type(value) is int else ""


def _add_memory(node: RayNode, spec: Fields, container: Fields) -> Fields:
    """Mount memory at /dev/shm for the object store, unless users mounted something there."""
    mounted = any(as_fields(each).get("mountPath") == "/dev/shm" for each in as_items(container.get("volumeMounts")))  # noqa: S108
    if mounted or "plasma-directory" in get_fields(node.group, "rayStartParams"):
        return spec
    limits, requests = (get_fields(container, "resources", side) for side in ("limits", "requests"))
    size = limits.get("memory") or requests.get("memory")
    source = {"medium": "Memory", **({"sizeLimit": size} if size else {})}
    mount = {"name": "shared-mem", "mountPath": "/dev/shm"}  # noqa: S108
    spec = edit_first_container(spec, lambda each: append(each, "volumeMounts", [mount]))
    return append(spec, "volumes", [{"name": "shared-mem", "emptyDir": source}])


def _add_probes(node: RayNode, container: Fields) -> Fields:
    """Add the probes that users did not write."""
    urls = [(2, _AGENT_PORT, "api/local_raylet_healthz")]
    if node.is_head:
        urls.append((10, _DEFAULT_PORTS["dashboard"], "api/gcs_healthz"))
    checks = " && ".join(
        f"wget --tries 1 -T {timeout} -q -O- http://localhost:{port}/{path} | grep success"
        for timeout, port, path in urls
    )
    probe = {"exec": {"command": ["bash", "-c", checks]}, "periodSeconds": 5, "successThreshold": 1}
    probe["timeoutSeconds"] = 5 if node.is_head else 2
    probes = {
        "livenessProbe": {**probe, "initialDelaySeconds": 30, "failureThreshold": 120},
        "readinessProbe": {**probe, "initialDelaySeconds": 10, "failureThreshold": 10},
    }
    return {**container, **{name: value for name, value in probes.items() if not container.get(name)}}


def _make_waiting_container(node: RayNode, container: Fields) -> Fields:
    """Return the container that waits until the head is ready."""
    script = f"until ray health-check --address {node.address}:{node.head_port} > /dev/null 2>&1; do sleep 5; done"
    fields = ("image", "imagePullPolicy", "securityContext", "env", "volumeMounts")
    copied = {field: container[field] for field in fields if container.get(field)}
    resources = {"limits": _WAIT, "requests": _WAIT}
    return {"name": "wait-gcs-ready", **copied, "command": _SHELL, "args": [script], "resources": resources}


def _make_autoscaler(node: RayNode, container: Fields) -> Fields:
    """Return the container that scales the worker groups."""
    options = get_fields(node.cluster, "autoscalerOptions")
    env = [
        field_variable("RAY_CLUSTER_NAME", "metadata.labels['ray.io/cluster']"),
        field_variable("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
        field_variable("RAY_HEAD_POD_NAME", "metadata.name"),
        variable("KUBERAY_CRD_VER", "v1"),
    ]
    names = "--cluster-name $(RAY_CLUSTER_NAME) --cluster-namespace $(RAY_CLUSTER_NAMESPACE)"
    found: Fields = {
        "name": "autoscaler",
        "image": as_string(options.get("image")) or container.get("image"),
        "imagePullPolicy": as_string(options.get("imagePullPolicy"), "IfNotPresent"),
        "env": env,
        "command": _SHELL,
        "args": [f"ray kuberay-autoscaler {names}"],
        "resources": as_fields(options.get("resources")) or {"limits": _AUTOSCALER, "requests": _AUTOSCALER},
    }
    for field in ("env", "envFrom", "volumeMounts"):
        found = append(found, field, as_items(options.get(field)))
    return found


def list_head_ports(spec: Fields) -> dict[str, int]:
    """Return the ports of the Service of the head: those of its container, else the default ones."""
    container = next(list_containers(spec), {})
    ports = {}
    for port in as_items(container.get("ports")):
        number = as_fields(port).get("containerPort")
        if type(number) is int:
            ports[as_string(port.get("name"), f"{number}-port")] = number
    return {**(ports or _DEFAULT_PORTS), "metrics": ports.get("metrics", _METRICS_PORT)}


def make_submit_command(name: str, spec: Fields, address: str, *, checks: bool) -> str:
    """Return the command that submits a job; with `checks`, a second try does not submit it again."""
    identity = f"{name}-{RANDOM}"
    submit = f"ray job submit --address {address}{' --no-wait' if checks else ''}"
    for option, field in (("runtime-env-json", "runtimeEnvYAML"), ("metadata-json", "metadata")):
        if spec.get(field):
            submit += f" --{option} {json.dumps(_text(spec[field]) or json.dumps(spec[field], default=str))}"
    submit += f" --submission-id {identity}"
    for option, field in (("entrypoint-num-cpus", "entrypointNumCpus"), ("entrypoint-num-gpus", "entrypointNumGpus")):
        amount = spec.get(field)
        if isinstance(amount, (int, float)) and amount > 0:
            submit += f" --{option} {amount:f}"
    if resources := as_string(spec.get("entrypointResources")):
        submit += f" --entrypoint-resources {json.dumps(resources)}"
    submit += f" -- {as_string(spec.get('entrypoint')).strip()} ;"
    if not checks:
        return submit
    status = f"ray job status --address {address} {identity} >/dev/null 2>&1"
    return f"if ! {status} ; then {submit} fi ; ray job logs --address {address} --follow {identity}"


_WORKERS = POD_SETS["ray.io", "RayCluster"][1]
_MAX_PREFIX = 50
_SUBMIT_RETRIES = 2
_RESOURCES = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "200Mi"}}
_FIXED_LABELS = ("ray.io/node-type", "ray.io/group", "ray.io/cluster")


class RayCluster(NamedTuple):
    """A cluster of Ray."""

    name: str
    namespace: str
    spec: Fields
    creator: str

    @property
    def head(self) -> Fields:
        """The group of the head."""
        return get_fields(self.spec, "headGroupSpec")

    @property
    def service(self) -> str:
        """The name of the Service of the head."""
        own = as_string(get_fields(self.head, "headService", "metadata").get("name"))
        return own or f"{self.name}-head-svc"

    @property
    def address(self) -> str:
        """The DNS name of the head."""
        return f"{self.service}.{self.namespace}.svc.cluster.local"


def create_ray_cluster(obj: Fields, _objects: Sequence[Fields], _cluster: Cluster) -> Created:
    """Compute the pods of a RayCluster."""
    namespace = as_string(get_fields(obj, "metadata").get("namespace"), "default")
    return _create_cluster(RayCluster(get_name(obj), namespace, as_fields(obj.get("spec")), "RayCluster"))


def create_ray_job(obj: Fields, _objects: Sequence[Fields], _cluster: Cluster) -> Created:
    """Compute the pods of a RayJob: those of its cluster, and the one that submits it."""
    spec, name = as_fields(obj.get("spec")), get_name(obj)
    namespace = as_string(get_fields(obj, "metadata").get("namespace"), "default")
    mode = as_string(spec.get("submissionMode"), "K8sJobMode")
    own = spec.get("rayClusterSpec")
    created = Created()
    if isinstance(own, dict) and not spec.get("clusterSelector"):
        shape = RayCluster(f"{name}-{RANDOM}", namespace, own, "RayJob")
        created = _create_cluster(_add_sidecar(shape, name, spec) if mode == "SidecarMode" else shape)
        created = created._replace(objects=(*created.objects, CreatedObject("Service", f"{name}-head-svc")))
    submitters = tuple(_list_submitters(name, namespace, spec)) if mode == "K8sJobMode" else ()
    return created._replace(pods=(*created.pods, *submitters))


def _create_cluster(cluster: RayCluster) -> Created:
    ports = list_head_ports(get_fields(cluster.head, "template", "spec"))
    return Created(tuple(_list_pods(cluster)), (CreatedObject("Service", cluster.service, ports),))


def _list_pods(cluster: RayCluster) -> Iterator[CreatedPod]:
    """Yield the head, which has rank 0, and the workers of all groups."""
    if cluster.head:
        yield from _list_group(cluster, cluster.head, "headgroup", 1, 0)
    rank = 1
    for group in (item for item in as_items(cluster.spec.get("workerGroupSpecs")) if isinstance(item, dict)):
        count = 0 if group.get("suspend") is True else count_pod_set(_WORKERS, group)
        yield from _list_group(cluster, group, as_string(group.get("groupName")), count, rank)
        rank += count


def _list_group(cluster: RayCluster, group: Fields, name: str, count: int, rank: int) -> Iterator[CreatedPod]:
    template = as_fields(group.get("template"))
    metadata = as_fields(template.get("metadata"))
    is_head = name == "headgroup"
    prefix = (cluster.name if is_head else f"{cluster.name}-{name}").replace(RANDOM, "#####")[:_MAX_PREFIX]
    pod_name = f"{prefix.replace('#####', RANDOM)}-{'head' if is_head else 'worker'}".lower() + f"-{RANDOM}"
    own = {**read_texts(metadata.get("labels")), **read_texts(group.get("labels"))}
    labels = {**_label_pod(cluster, name, is_head), **{key: own[key] for key in own if key not in _FIXED_LABELS}}
    node = RayNode(is_head, group, cluster.head, cluster.spec, cluster.address, cluster.creator)
    spec = complete_pod(node, as_fields(template.get("spec")))
    policy = as_string(spec.get("restartPolicy"), "Always")
    for index, pods in list_indexes(count):
        yield CreatedPod(
            "head" if is_head else name,
            index,
            pod_name,
            spec,
            template,
            labels,
            read_texts(metadata.get("annotations")),
            rank + index,
            hostname=as_string(spec.get("hostname"), pod_name),
            address=cluster.service if is_head else "",
            main=next((as_string(each.get("name")) for each in list_containers(spec)), ""),
            restarts=Restarts(policy),
            count=pods,
        )


def _label_pod(cluster: RayCluster, group: str, is_head: bool) -> dict[str, str]:
    kind = "head" if is_head else "worker"
    return {
        "ray.io/is-ray-node": "yes",
        "ray.io/cluster": cluster.name,
        "ray.io/node-type": kind,
        "ray.io/group": group,
        "ray.io/identifier": f"{cluster.name}-{kind}",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }


def _make_submitter(spec: Fields) -> dict[str, Any]:
    """Return the container that submits the job, if users wrote none."""
    head = get_fields(spec, "rayClusterSpec", "headGroupSpec", "template", "spec")
    image = next((each.get("image") for each in list_containers(head)), None)
    return {"name": "ray-job-submitter", "image": image, "resources": _RESOURCES}


def _list_submitters(name: str, namespace: str, spec: Fields) -> Iterator[CreatedPod]:
    """Yield the pod of the Job that submits the RayJob."""
    written = spec.get("submitterPodTemplate")
    template = as_fields(written) or {"spec": {"containers": [_make_submitter(spec)], "restartPolicy": "Never"}}
    dashboard = f"{name}-{RANDOM}-head-svc.{namespace}.svc.cluster.local:8265"
    pod = as_fields(template.get("spec"))
    containers = as_items(pod.get("containers"))
    if containers and isinstance(containers[0], dict):
        container = containers[0]
        command: dict[str, Any] = {}
        if not container.get("command"):
            text = make_submit_command(name, spec, f"http://{dashboard}", checks=True)
            command = {"command": ["/bin/bash", "-ce", "--"], "args": [text]}
        first = append({**container, **command}, "env", _list_submit_variables(name, dashboard))
        pod = {**pod, "containers": [first, *containers[1:]]}
    retries = as_count(get_fields(spec, "submitterConfig").get("backoffLimit"), _SUBMIT_RETRIES)
    job = {"backoffLimit": retries, "template": {**template, "spec": pod}}
    for created in list_job_pods(name, job, "submitter"):
        yield replace(created, rank=None, template=as_fields(written))


def _list_submit_variables(name: str, dashboard: str) -> list[Fields]:
    values = (
        ("PYTHONUNBUFFERED", "1"),
        ("RAY_DASHBOARD_ADDRESS", dashboard),
        ("RAY_JOB_SUBMISSION_ID", f"{name}-{RANDOM}"),
    )
    return [{"name": key, "value": value} for key, value in values]


def _add_sidecar(cluster: RayCluster, name: str, spec: Fields) -> RayCluster:
    """Add the container that submits the job to the head."""
    head, template = cluster.head, get_fields(cluster.head, "template")
    text = make_submit_command(name, spec, "http://127.0.0.1:8265", checks=False)
    dashboard = f"{cluster.address}:8265"
    sidecar = {**_make_submitter(spec), "command": ["/bin/bash", "-ce", "--"], "args": [text]}
    sidecar = append(sidecar, "env", _list_submit_variables(name, dashboard))
    pod = append({**as_fields(template.get("spec")), "restartPolicy": "Never"}, "containers", [sidecar])
    group = {**head, "template": {**template, "spec": pod}}
    return cluster._replace(spec={**cluster.spec, "headGroupSpec": group})
