"""Which kinds of objects belong to the cluster, not to a namespace."""

from __future__ import annotations

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
