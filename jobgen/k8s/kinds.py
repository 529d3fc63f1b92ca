"""Kinds of Kubernetes: their groups, whether they are in a namespace, and API versions that were removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from jobgen.model.data import Location
from jobgen.model.lazy_re import may_mention
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import parse_digits

BUILTIN_GROUPS = frozenset(
    (
        "",
        *"""admissionregistration.k8s.io apiextensions.k8s.io apiregistration.k8s.io apps authentication.k8s.io
        authorization.k8s.io autoscaling batch certificates.k8s.io coordination.k8s.io discovery.k8s.io
        events.k8s.io flowcontrol.apiserver.k8s.io internal.apiserver.k8s.io networking.k8s.io node.k8s.io
        policy rbac.authorization.k8s.io resource.k8s.io scheduling.k8s.io storage.k8s.io
        storagemigration.k8s.io""".split(),
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
_ANSWERED_GROUPS = frozenset(("authentication.k8s.io", "authorization.k8s.io"))


def is_answered(group: str) -> bool:
    """Return True if the API server only answers the objects of a group: reviews, which need no name."""
    return group in _ANSWERED_GROUPS


def needs_name(api_version: str, kind: str) -> bool:
    """Return True if an object of a kind needs a name; the API server gives one to a LimitRange."""
    return not is_answered(get_group(api_version)) and (api_version, kind) != ("v1", "LimitRange")


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
    DeviceTaintRule FlowSchema GatewayClass HyperNode IPAddress IngressClass MultiKueueCluster MultiKueueConfig
    MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration Namespace Node NodeShard
    Numatopology PersistentVolume PriorityClass PriorityLevelConfiguration ProvisioningRequestConfig ResourceFlavor
    ResourceSlice RuntimeClass ServiceCIDR StorageClass StorageVersion StorageVersionMigration Topology
    ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration VolumeAttachment
    VolumeAttributesClass WorkloadPriorityClass""".split()
)
_REMOVED_VERSIONS = {
    "1.16": "apps/v1beta1 apps/v1beta2",
    "1.21": "batch/v2alpha1",
    "1.22": """admissionregistration.k8s.io/v1beta1 apiextensions.k8s.io/v1beta1 apiregistration.k8s.io/v1beta1
    authentication.k8s.io/v1beta1 authorization.k8s.io/v1beta1 certificates.k8s.io/v1beta1 coordination.k8s.io/v1beta1
    extensions/v1beta1 networking.k8s.io/v1beta1 rbac.authorization.k8s.io/v1alpha1 rbac.authorization.k8s.io/v1beta1
    scheduling.k8s.io/v1beta1 storage.k8s.io/v1beta1""",
    "1.25": """autoscaling/v2beta1 batch/v1beta1 discovery.k8s.io/v1beta1 events.k8s.io/v1beta1 node.k8s.io/v1beta1
    policy/v1beta1""",
    "1.26": "autoscaling/v2beta2 flowcontrol.apiserver.k8s.io/v1beta1",
    "1.29": "flowcontrol.apiserver.k8s.io/v1beta2",
    "1.32": "flowcontrol.apiserver.k8s.io/v1beta3",
}
_REMOVALS = {version: release for release, versions in _REMOVED_VERSIONS.items() for version in versions.split()}
_MOVED_KINDS = {
    **dict.fromkeys(("DaemonSet", "Deployment", "ReplicaSet"), "apps/v1"),
    **dict.fromkeys(("Ingress", "NetworkPolicy"), "networking.k8s.io/v1"),
}
_GONE_KINDS = {"PodSecurityPolicy": "1.25"}


def find_removal(api_version: str, kind: str) -> tuple[str, str] | None:
    """Return the release that removed a version, and the version that replaces it for this kind, if there is one."""
    if api_version not in _REMOVALS:
        return None
    if kind in _GONE_KINDS:
        return _GONE_KINDS[kind], ""
    if api_version == "extensions/v1beta1":
        return "1.22" if kind == "Ingress" else "1.16", _MOVED_KINDS.get(kind, "")
    group = get_group(api_version)
    return _REMOVALS[api_version], f"{group}/{'v2' if group == 'autoscaling' else 'v1'}"


# Since 1.24, Kubernetes serves no new beta version by default (KEP-3136). This one is older: `instance.go` in
# pkg/controlplane of 1.30 and 1.31 lists it in `legacyBetaEnabledByDefaultResources`, and 1.32 removed it.
_SERVED_BETAS = frozenset(("flowcontrol.apiserver.k8s.io/v1beta3",))


def is_served_by_default(api_version: str) -> bool:
    """Return True if a server serves a version of Kubernetes' own kinds, if it has it, without being told to."""
    version = api_version.rpartition("/")[2]
    return not ("alpha" in version or "beta" in version) or api_version in _SERVED_BETAS


# The releases of Kubernetes that jobgen knows.

Release = tuple[int, int]
"""A minor release of Kubernetes, such as (1, 36)."""
NEWEST_RELEASE: Release = (1, 36)
OLDEST_RELEASE: Release = (1, 30)


def parse_release(text: str) -> Release:
    """Return the minor release of a version such as `1.33` or `v1.33.4-gke.100`; the newest if the text is empty."""
    if not text:
        return NEWEST_RELEASE
    major, _, rest = text.removeprefix("v").partition(".")
    minor = rest.partition(".")[0].partition("-")[0].partition("+")[0]
    numbers = parse_digits(major), parse_digits(minor)
    return NEWEST_RELEASE if None in numbers else (numbers[0] or 0, numbers[1] or 0)


def format_release(release: Release) -> str:
    """Return a release as users write it."""
    return f"{release[0]}.{release[1]}"


def list_releases() -> list[str]:
    """Return the releases whose kinds jobgen knows, the newest first."""
    major, newest = NEWEST_RELEASE
    return [format_release((major, minor)) for minor in range(newest, OLDEST_RELEASE[1] - 1, -1)]


# The kinds that CustomResourceDefinitions define, as data.

DEFINITION_KIND = "CustomResourceDefinition"
KEEPS_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
_ANY_OBJECT = {"type": "object", KEEPS_UNKNOWN: True}


class DefinedVersion(NamedTuple):
    """A version of a kind in a definition."""

    name: str
    is_served: bool
    schema: Mapping[str, Any]
    """Its `openAPIV3Schema`, as it is written."""
    subresources: Any
    keeps_unknown: bool
    """True if the cluster keeps unknown fields everywhere, as it does for definitions of `v1beta1`."""


class Definition(NamedTuple):
    """A kind that a CustomResourceDefinition defines."""

    group: str
    kind: str
    versions: tuple[DefinedVersion, ...]
    location: Location


DefinitionSource: TypeAlias = Callable[[str], Sequence[Definition]]
"""Returns the definitions of an API group among the files of a run."""


def no_definitions(_: str) -> Sequence[Definition]:
    """Return no definitions: for runs whose files define no kinds for each other."""
    return ()


_DEFINITION = DEFINITION_KIND.encode()


def may_define_kinds(content: bytes) -> bool:
    """Return True if a file may hold a CustomResourceDefinition."""
    return may_mention(content, _DEFINITION)


def read_definition(data: Any, location: Location) -> Definition | None:
    """Return what an object defines; None if it is no CustomResourceDefinition, or a patch of one."""
    if not isinstance(data, dict) or data.get("kind") != DEFINITION_KIND:
        return None
    spec = data.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict):
        return None
    group, kind = spec.get("group"), names.get("kind")
    versions = tuple(_read_versions(spec, is_old=data.get("apiVersion") == "apiextensions.k8s.io/v1beta1"))
    if not (isinstance(group, str) and isinstance(kind, str) and versions):
        return None
    return Definition(group, kind, versions, location)


def _read_versions(spec: Mapping[str, Any], *, is_old: bool) -> Iterator[DefinedVersion]:
    """The versions of a definition. One of `v1beta1` may have a single one, and a schema that all versions share."""
    keeps_unknown = is_old and spec.get("preserveUnknownFields") is not False
    listed = spec.get("versions")
    if is_old and not listed:
        listed = [{"name": spec.get("version"), "served": True}]
    for version in listed if isinstance(listed, list) else ():
        if isinstance(version, dict) and isinstance(version.get("name"), str):
            schema = _read_schema(version.get("schema")) or (_read_schema(spec.get("validation")) if is_old else {})
            subresources = version.get("subresources") or (spec.get("subresources") if is_old else None)
            served = version.get("served") is not False
            yield DefinedVersion(version["name"], served, schema or _ANY_OBJECT, subresources, keeps_unknown)


def _read_schema(holder: Any) -> Mapping[str, Any]:
    schema = holder.get("openAPIV3Schema") if isinstance(holder, dict) else None
    return schema if isinstance(schema, dict) else {}
