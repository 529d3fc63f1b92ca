"""Kinds of Kubernetes: their groups, whether they are in a namespace, and API versions that were removed."""

from __future__ import annotations

from functools import lru_cache

BUILTIN_GROUPS = frozenset(
    (
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "internal.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
        "storagemigration.k8s.io",
    )
)
"""The groups of Kubernetes itself, whose kinds have no CRD."""


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


CLUSTER_SCOPED = frozenset(
    """APIService AdmissionCheck CSIDriver CSINode CertificateSigningRequest ClusterQueue ClusterRole
    ClusterRoleBinding ClusterTrainingRuntime ClusterTrustBundle Cohort CustomResourceDefinition DeviceClass
    DeviceTaintRule FlowSchema HyperNode IPAddress IngressClass MultiKueueCluster MultiKueueConfig
    MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration Namespace Node
    PersistentVolume PriorityClass PriorityLevelConfiguration ProvisioningRequestConfig ResourceFlavor
    ResourceSlice RuntimeClass ServiceCIDR StorageClass StorageVersion StorageVersionMigration Topology
    ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration VolumeAttachment
    VolumeAttributesClass WorkloadPriorityClass""".split()
)
"""Kinds whose objects have no namespace."""


_REMOVED_VERSIONS: dict[str, tuple[str, str]] = {
    "admissionregistration.k8s.io/v1beta1": ("1.22", "admissionregistration.k8s.io/v1"),
    "apiextensions.k8s.io/v1beta1": ("1.22", "apiextensions.k8s.io/v1"),
    "apiregistration.k8s.io/v1beta1": ("1.22", "apiregistration.k8s.io/v1"),
    "apps/v1beta1": ("1.16", "apps/v1"),
    "apps/v1beta2": ("1.16", "apps/v1"),
    "authentication.k8s.io/v1beta1": ("1.22", "authentication.k8s.io/v1"),
    "authorization.k8s.io/v1beta1": ("1.22", "authorization.k8s.io/v1"),
    "autoscaling/v2beta1": ("1.25", "autoscaling/v2"),
    "autoscaling/v2beta2": ("1.26", "autoscaling/v2"),
    "batch/v1beta1": ("1.25", "batch/v1"),
    "batch/v2alpha1": ("1.21", "batch/v1"),
    "certificates.k8s.io/v1beta1": ("1.22", "certificates.k8s.io/v1"),
    "coordination.k8s.io/v1beta1": ("1.22", "coordination.k8s.io/v1"),
    "discovery.k8s.io/v1beta1": ("1.25", "discovery.k8s.io/v1"),
    "events.k8s.io/v1beta1": ("1.25", "events.k8s.io/v1"),
    "extensions/v1beta1": ("1.22", ""),
    "flowcontrol.apiserver.k8s.io/v1beta1": ("1.26", "flowcontrol.apiserver.k8s.io/v1"),
    "flowcontrol.apiserver.k8s.io/v1beta2": ("1.29", "flowcontrol.apiserver.k8s.io/v1"),
    "flowcontrol.apiserver.k8s.io/v1beta3": ("1.32", "flowcontrol.apiserver.k8s.io/v1"),
    "networking.k8s.io/v1beta1": ("1.22", "networking.k8s.io/v1"),
    "node.k8s.io/v1beta1": ("1.25", "node.k8s.io/v1"),
    "policy/v1beta1": ("1.25", "policy/v1"),
    "rbac.authorization.k8s.io/v1alpha1": ("1.22", "rbac.authorization.k8s.io/v1"),
    "rbac.authorization.k8s.io/v1beta1": ("1.22", "rbac.authorization.k8s.io/v1"),
    "scheduling.k8s.io/v1beta1": ("1.22", "scheduling.k8s.io/v1"),
    "storage.k8s.io/v1beta1": ("1.22", "storage.k8s.io/v1"),
}
_MOVED_KINDS = {
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "Ingress": "networking.k8s.io/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "ReplicaSet": "apps/v1",
}
_GONE_KINDS = {"PodSecurityPolicy": "1.25"}


def find_removal(api_version: str, kind: str) -> tuple[str, str] | None:
    """Return the release that removed a version, and the version that replaces it for this kind, if there is one."""
    if api_version not in _REMOVED_VERSIONS:
        return None
    if kind in _GONE_KINDS:
        return _GONE_KINDS[kind], ""
    release, successor = _REMOVED_VERSIONS[api_version]
    if api_version == "extensions/v1beta1":
        successor = _MOVED_KINDS.get(kind, "")
        release = "1.22" if kind == "Ingress" else "1.16"
    return release, successor
