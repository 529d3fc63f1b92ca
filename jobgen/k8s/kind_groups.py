"""The API groups of kinds that are known by their name alone: a custom kind may have the same name."""

from __future__ import annotations

from functools import lru_cache

_KINDS_BY_GROUP = {
    "": """ConfigMap LimitRange Namespace Node PersistentVolume PersistentVolumeClaim ResourceQuota Secret
    ServiceAccount""",
    "admissionregistration.k8s.io": """MutatingAdmissionPolicy MutatingAdmissionPolicyBinding
    MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
    ValidatingWebhookConfiguration""",
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "apps": "StatefulSet",
    "bitnami.com": "SealedSecret",
    "cert-manager.io": "Certificate",
    "external-secrets.io": "ExternalSecret",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "kubeflow.org": "Profile",
    "kueue.x-k8s.io": """AdmissionCheck ClusterQueue Cohort LocalQueue MultiKueueCluster MultiKueueConfig
    ProvisioningRequestConfig ResourceFlavor Topology WorkloadPriorityClass""",
    "node.k8s.io": "RuntimeClass",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding Role",
    "resource.k8s.io": "DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceSlice",
    "scheduling.k8s.io": "PriorityClass",
    "scheduling.volcano.sh": "Queue",
    "storage.k8s.io": "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
    "trainer.kubeflow.org": "ClusterTrainingRuntime TrainingRuntime",
    "workload.codeflare.dev": "AppWrapper",
}
_GROUPS = {kind: group for group, kinds in _KINDS_BY_GROUP.items() for kind in kinds.split()}


def get_group(api_version: str) -> str:
    """Return the group of an API version; empty for that of the core."""
    return api_version.rpartition("/")[0]


@lru_cache(maxsize=1024)
def qualify_kind(api_version: str, kind: str) -> str:
    """Return a kind, with its group if a kind of another group is known by this name."""
    group = get_group(api_version)
    return kind if _GROUPS.get(kind, group) == group else f"{kind}.{group}"
