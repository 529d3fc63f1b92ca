"""The pods of a RayJob and of a RayCluster: the head, the workers of each group, and the pod that submits the job.

Source: ray-project/kuberay 1.6, ray-operator/controllers/ray/common (pod.go, job.go, service.go), rayjob_controller.go
and utils/util.go. Fault tolerance of the GCS and authentication by tokens are not covered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from jobgen.features.convert.operators.batch_job import list_job_pods
from jobgen.features.convert.operators.created import (
    RANDOM,
    Created,
    CreatedObject,
    CreatedPod,
    Fields,
    Restarts,
    list_indexes,
)
from jobgen.features.convert.operators.fields import (
    as_count,
    as_fields,
    as_items,
    as_string,
    get_fields,
    get_name,
    read_texts,
)
from jobgen.features.convert.operators.pod_edits import append, list_containers
from jobgen.features.convert.operators.ray_pods import RayNode, complete_pod, list_head_ports, make_submit_command
from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.overlay import Cluster

_MAX_REPLICAS = 2**31 - 1
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
        count = _count_workers(group)
        yield from _list_group(cluster, group, as_string(group.get("groupName")), count, rank)
        rank += count


def _count_workers(group: Fields) -> int:
    least, most = as_count(group.get("minReplicas"), 0), as_count(group.get("maxReplicas"), _MAX_REPLICAS)
    wanted = as_count(group.get("replicas"), least)
    if group.get("suspend") is True:
        return 0
    return min(max(wanted, least), most) * as_count(group.get("numOfHosts"), 1)


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
        first = _complete_submitter(containers[0], name, spec, dashboard)
        pod = {**pod, "containers": [first, *containers[1:]]}
    retries = as_count(get_fields(spec, "submitterConfig").get("backoffLimit"), _SUBMIT_RETRIES)
    job = {"backoffLimit": retries, "template": {**template, "spec": pod}}
    for created in list_job_pods(name, job, "submitter"):
        yield replace(created, rank=None, template=as_fields(written))


def _complete_submitter(container: Fields, name: str, spec: Fields, dashboard: str) -> Fields:
    command: dict[str, Any] = {}
    if not container.get("command"):
        text = make_submit_command(name, spec, f"http://{dashboard}", checks=True)
        command = {"command": ["/bin/bash", "-ce", "--"], "args": [text]}
    return append({**container, **command}, "env", _list_submit_variables(name, dashboard))


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
