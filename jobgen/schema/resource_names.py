"""What the API server calls the kinds of a group in roles and policies: names in the plural, such as `jobs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from jobgen.model.meant import find_meant
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.shipped import list_shipped_schemas

_KINDS = {
    "": """Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume
    PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount""",
    "admissionregistration.k8s.io": """MutatingAdmissionPolicy MutatingAdmissionPolicyBinding
    MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
    ValidatingWebhookConfiguration""",
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "apps": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "autoscaling": "HorizontalPodAutoscaler",
    "batch": "CronJob Job",
    "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle PodCertificateRequest",
    "coordination.k8s.io": "Lease LeaseCandidate",
    "discovery.k8s.io": "EndpointSlice",
    "events.k8s.io": "Event",
    "networking.k8s.io": "IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    "policy": "PodDisruptionBudget",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "storage.k8s.io": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass",
}
"""The kinds of the groups of Kubernetes that have been the same for many releases."""
_OPERATORS = "crds"
_SHORT_NAMES = {
    "cm": "configmaps",
    "deploy": "deployments",
    "ds": "daemonsets",
    "ep": "endpoints",
    "hpa": "horizontalpodautoscalers",
    "ing": "ingresses",
    "netpol": "networkpolicies",
    "ns": "namespaces",
    "pdb": "poddisruptionbudgets",
    "po": "pods",
    "pvc": "persistentvolumeclaims",
    "rs": "replicasets",
    "sa": "serviceaccounts",
    "sts": "statefulsets",
    "svc": "services",
}
"""What `kubectl` takes for a resource, and a role does not."""


class Meant(NamedTuple):
    """The resource that a name means, and the group that has it."""

    group: str
    resource: str


def pluralize_kind(kind: str) -> str:
    """Return the name of the resource of a kind, as all kinds in these tables have it."""
    word = kind.lower()
    if word == "endpoints":
        return word
    if word.endswith("s"):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") and word[-2] not in "aeiou" else f"{word}s"


@cache
def _read_groups() -> Mapping[str, Mapping[str, str]]:
    """Read the resources of all known groups, each with its name in the singular."""
    found = {group: kinds.lower().split() for group, kinds in _KINDS.items()}
    for group in list_shipped_schemas(_OPERATORS):
        found[group] = [name.partition("_")[0] for name in list_shipped_schemas(f"{_OPERATORS}/{group}")]
    return {group: {pluralize_kind(kind): kind for kind in kinds} for group, kinds in found.items()}


def list_groups() -> list[str]:
    """List the groups whose resources are known: those of Kubernetes first, and those of operators that run jobs."""
    return list(_read_groups())


def _get_domain(group: str) -> str:
    """Return the domain of a group below a project's own, which its other groups share; `-` if there is none."""
    domain = group.partition(".")[2]
    return domain if "." in domain else "-"


def find_group(resources: Sequence[str]) -> str:
    """Return the first group that has all these resources; that of the core if none has."""
    return next((group for group, known in _read_groups().items() if all(each in known for each in resources)), "")


def find_meant_resource(name: str, groups: Sequence[str]) -> Meant | None:
    """Return what the name of a resource certainly means that none of these groups has; None if one may have it."""
    known = _read_groups()
    if not groups or any(group not in known for group in groups):
        return None
    if any(name in known[group] for group in groups):
        return None
    plain = _SHORT_NAMES.get(name, name).lower()
    if plain == name and any(each != name and each.endswith(name) for group in groups for each in known[group]):
        # `jobs` of ray.io may be `rayjobs`.
        return None
    siblings = [each for each in known if any(each.partition(".")[2] == _get_domain(group) for group in groups)]
    for group in (*groups, *siblings, *known):
        for resource, kind in known[group].items():
            if plain in (resource, kind):
                return Meant(group, resource)
    near = {resource: group for group in groups if group in _KINDS for resource in known[group]}
    meant = find_meant(name, near)
    return Meant(near[meant], meant) if meant else None
