"""The defaults of Kubernetes' own types, by type and field: in its objects, and in the pods that CRDs embed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jobgen.k8s.images import parse_image_name
from jobgen.k8s.releases import Release

_PORT: dict[str, Any] = {"protocol": "TCP"}
_FILES: dict[str, Any] = {"defaultMode": 420}
_NAME_SINCE: Release = (1, 30)
_VOLUMES_SINCE: Release = (1, 31)
_REFERENCES = (
    "ConfigMapEnvSource ConfigMapKeySelector ConfigMapProjection ConfigMapVolumeSource LocalObjectReference "
    "SecretEnvSource SecretKeySelector SecretProjection"
).split()

IN_CRDS: Mapping[str, Mapping[str, tuple[Release, Any]]] = {
    "core_v1.ContainerPort": {"protocol": ((1, 0), "TCP")},
    **{f"core_v1.{name}": {"name": (_NAME_SINCE, "")} for name in _REFERENCES},
    "core_v1.GRPCAction": {"service": (_VOLUMES_SINCE, "")},
    "core_v1.FileKeySelector": {"optional": ((1, 34), False)},
    "core_v1.AzureDiskVolumeSource": {"fsType": (_VOLUMES_SINCE, "ext4"), "readOnly": (_VOLUMES_SINCE, False)},
    "core_v1.ISCSIVolumeSource": {"iscsiInterface": (_VOLUMES_SINCE, "default")},
    "core_v1.RBDVolumeSource": {
        "keyring": (_VOLUMES_SINCE, "/etc/ceph/keyring"),
        "pool": (_VOLUMES_SINCE, "rbd"),
        "user": (_VOLUMES_SINCE, "admin"),
    },
    "core_v1.ScaleIOVolumeSource": {
        "fsType": (_VOLUMES_SINCE, "xfs"),
        "storageMode": (_VOLUMES_SINCE, "ThinProvisioned"),
    },
}
"""What controller-gen writes into a CRD, each with the first release of the embedded pods that has it."""

_CONTAINER: dict[str, Any] = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_WORKLOAD: dict[str, Any] = {"replicas": 1, "revisionHistoryLimit": 10}
_TEMPLATE: dict[str, Any] = {"metadata": {}}

IN_OBJECTS: Mapping[str, Mapping[str, Any]] = {
    "core_v1.PodSpec": {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    },
    "core_v1.PodTemplateSpec": _TEMPLATE,
    "core_v1.Container": _CONTAINER,
    "core_v1.EphemeralContainer": _CONTAINER,
    "core_v1.ContainerPort": _PORT,
    "core_v1.Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    "core_v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core_v1.GRPCAction": {"service": ""},
    "core_v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "core_v1.SecretVolumeSource": _FILES,
    "core_v1.ConfigMapVolumeSource": _FILES,
    "core_v1.DownwardAPIVolumeSource": _FILES,
    "core_v1.ProjectedVolumeSource": _FILES,
    "core_v1.HostPathVolumeSource": {"type": ""},
    "core_v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "core_v1.ISCSIVolumeSource": {"iscsiInterface": "default"},
    "core_v1.RBDVolumeSource": {"keyring": "/etc/ceph/keyring", "pool": "rbd", "user": "admin"},
    "core_v1.ScaleIOVolumeSource": {"fsType": "xfs", "storageMode": "ThinProvisioned"},
    "core_v1.AzureDiskVolumeSource": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "kind": "Shared",
        "readOnly": False,
    },
    "core_v1.ServiceSpec": {"internalTrafficPolicy": "Cluster", "sessionAffinity": "None", "type": "ClusterIP"},
    "core_v1.ServicePort": _PORT,
    "core_v1.EndpointPort": _PORT,
    "core_v1.Secret": {"type": "Opaque"},
    "core_v1.PersistentVolumeClaim": {"status": {}},
    "core_v1.PersistentVolumeClaimSpec": {"resources": {}, "volumeMode": "Filesystem"},
    "core_v1.PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "core_v1.NamespaceSpec": {"finalizers": ["kubernetes"]},
    "core_v1.Namespace": {"spec": {}, "status": {"phase": "Active"}},
    "core_v1.Pod": {"status": {"phase": "Pending"}},
    "batch_v1.Job": {"status": {}},
    "batch_v1.CronJob": {"status": {}},
    "batch_v1.CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "failedJobsHistoryLimit": 1,
        "successfulJobsHistoryLimit": 3,
        "suspend": False,
    },
    "batch_v1.JobTemplateSpec": _TEMPLATE,
    "batch_v1.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "apps_v1.Deployment": {"status": {}},
    "apps_v1.DeploymentSpec": {
        **_WORKLOAD,
        "progressDeadlineSeconds": 600,
        "strategy": {"type": "RollingUpdate"},
    },
    "apps_v1.StatefulSet": {"status": {"replicas": 0, "availableReplicas": 0}},
    "apps_v1.StatefulSetSpec": {
        **_WORKLOAD,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate"},
    },
    "apps_v1.DaemonSetSpec": {"revisionHistoryLimit": 10, "updateStrategy": {"type": "RollingUpdate"}},
    "apps_v1.ReplicaSet": {"status": {"replicas": 0}},
    "apps_v1.ReplicaSetSpec": {"replicas": 1},
    "autoscaling_v2.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "networking_v1.NetworkPolicyPort": _PORT,
    "networking_v1.NetworkPolicySpec": {"podSelector": {}},
    "rbac_v1.RoleRef": {"apiGroup": "rbac.authorization.k8s.io"},
    "scheduling_v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "storage_v1.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
}
"""What the API server fills in and Go writes out for objects of its own kinds."""

_GENERATED = frozenset(
    """CronJob DaemonSet Deployment Ingress Job MutatingAdmissionPolicy MutatingWebhookConfiguration NetworkPolicy Pod
    PodDisruptionBudget ReplicaSet ResourceClaim StatefulSet ValidatingAdmissionPolicy
    ValidatingWebhookConfiguration""".split()
)
_PLACES = {"": "core", "rbac.authorization.k8s.io": "rbac"}


def name_type(api_version: str, kind: str) -> str:
    """Return the name of the type of an object, such as `batch_v1.Job`."""
    group, _, version = api_version.rpartition("/")
    return f"{_PLACES.get(group, group.partition('.')[0])}_{version}.{kind}"


def has_generation(kind: str) -> bool:
    """Whether the API server counts the generations of objects of one of Kubernetes' own kinds."""
    return kind in _GENERATED


def _complete_container(container: dict[str, Any]) -> dict[str, Any]:
    image = container.get("image")
    if "imagePullPolicy" not in container and isinstance(image, str):
        parsed = parse_image_name(image)
        is_latest = not parsed.digest and parsed.tag in ("", "latest")
        container["imagePullPolicy"] = "Always" if is_latest else "IfNotPresent"
    return container


def _complete_job(spec: dict[str, Any]) -> dict[str, Any]:
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    return spec


def _complete_rolling_update(field: str, defaults: Mapping[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def complete(spec: dict[str, Any]) -> dict[str, Any]:
        strategy = spec.get(field)
        if isinstance(strategy, dict) and strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            given = strategy.get("rollingUpdate")
            spec[field] = {**strategy, "rollingUpdate": {**defaults, **(given if isinstance(given, dict) else {})}}
        return spec

    return complete


def _complete_volume(volume: dict[str, Any]) -> dict[str, Any]:
    return volume if len(volume.keys() - {"name"}) else {**volume, "emptyDir": {}}


def _complete_service_port(port: dict[str, Any]) -> dict[str, Any]:
    return {**port, "targetPort": port["port"]} if "targetPort" not in port and "port" in port else port


def _complete_network_policy(spec: dict[str, Any]) -> dict[str, Any]:
    if "policyTypes" not in spec:
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    return spec


def _complete_pod(pod: dict[str, Any]) -> dict[str, Any]:
    """Request what a container's limits say, as for every pod that is created itself."""
    spec = pod.get("spec")
    if isinstance(spec, dict):
        spec.setdefault("enableServiceLinks", True)
        spec.setdefault("serviceAccountName", "default")
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
        for field in ("containers", "initContainers"):
            listed = spec.get(field)
            for container in listed if isinstance(listed, list) else ():
                _request_limits(container)
    return pod


def _request_limits(container: Any) -> None:
    resources = container.get("resources") if isinstance(container, dict) else None
    limits = resources.get("limits") if isinstance(resources, dict) else None
    if isinstance(resources, dict) and isinstance(limits, dict) and limits:
        given = resources.get("requests")
        resources["requests"] = {**limits, **(given if isinstance(given, dict) else {})}


COMPLETIONS: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "core_v1.Container": _complete_container,
    "core_v1.EphemeralContainer": _complete_container,
    "core_v1.Volume": _complete_volume,
    "core_v1.ServicePort": _complete_service_port,
    "core_v1.Pod": _complete_pod,
    "apps_v1.DeploymentSpec": _complete_rolling_update("strategy", {"maxSurge": "25%", "maxUnavailable": "25%"}),
    "apps_v1.DaemonSetSpec": _complete_rolling_update("updateStrategy", {"maxSurge": 0, "maxUnavailable": 1}),
    "apps_v1.StatefulSetSpec": _complete_rolling_update("updateStrategy", {"partition": 0}),
    "networking_v1.NetworkPolicySpec": _complete_network_policy,
}
"""Defaults that depend on other fields of a value."""

AT_ROOT: Mapping[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "batch_v1.Job": ("spec", _complete_job)
}
"""Defaults that a type has only in an object of its own, not inside another kind: a CronJob has none for its jobs."""
