"""The versions of Kubernetes' own kinds that old releases had, with the release that removed each."""

from __future__ import annotations

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
