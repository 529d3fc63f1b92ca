"""Validate objects of Kubernetes' own kinds as the API server of Kubernetes does, beyond their schema.

Each module has a table `KINDS` of the kinds of one group of APIs, or of a part of it. It is imported when the first
object of one of its kinds is validated.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module

from jobgen.check.admission.fields import (
    Fields,
    Kind,
    Validation,
)
from jobgen.check.admission.metadata import MetadataFormat
from jobgen.check.admission.names import PATH_SEGMENT_NAME, SUBDOMAIN_NAME, NameFormat
from jobgen.k8s.devices import CatalogSource, no_catalog
from jobgen.k8s.kinds import BUILTIN_GROUPS, CLUSTER_SCOPED, NEWEST_RELEASE, Release, is_answered
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.finding import Problem

MODULES: Mapping[str, Mapping[str, str]] = {
    "": {
        "cluster": "Namespace",
        "config": "ConfigMap Secret",
        "quotas": "LimitRange ResourceQuota",
        "services": "Endpoints Service",
        "storage": "PersistentVolume PersistentVolumeClaim",
        "workloads": "PodTemplate ReplicationController",
    },
    "admissionregistration.k8s.io": {
        "admissionregistration": """MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration
            ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"""
    },
    "apiextensions.k8s.io": {"crds": "CustomResourceDefinition"},
    "apiregistration.k8s.io": {"cluster": "APIService"},
    "apps": {"workloads": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet"},
    "autoscaling": {"workloads": "HorizontalPodAutoscaler"},
    "batch": {"jobs": "CronJob Job"},
    "discovery.k8s.io": {"services": "EndpointSlice"},
    "networking.k8s.io": {"networking": "Ingress IngressClass NetworkPolicy"},
    "node.k8s.io": {"cluster": "RuntimeClass"},
    "policy": {"workloads": "PodDisruptionBudget"},
    "rbac.authorization.k8s.io": {"access": "ClusterRole ClusterRoleBinding Role RoleBinding"},
    "resource.k8s.io": {"devices": "DeviceClass ResourceClaim ResourceClaimTemplate"},
    "scheduling.k8s.io": {"quotas": "PodGroup PriorityClass Workload"},
    "storage.k8s.io": {"storage": "CSIDriver StorageClass VolumeAttributesClass"},
}
"""The kinds that are validated: by group, the module and its kinds. Those that no repository holds are not."""

_PATH_SEGMENT_NAMES = frozenset(
    """/Event certificates.k8s.io/CertificateSigningRequest certificates.k8s.io/ClusterTrustBundle
    networking.k8s.io/IPAddress authorization.openshift.io/ClusterRole authorization.openshift.io/ClusterRoleBinding
    authorization.openshift.io/Role authorization.openshift.io/RoleBinding image.openshift.io/Image
    image.openshift.io/ImageStream image.openshift.io/ImageStreamTag image.openshift.io/ImageTag
    oauth.openshift.io/OAuthClient oauth.openshift.io/OAuthClientAuthorization user.openshift.io/Group
    user.openshift.io/Identity user.openshift.io/User user.openshift.io/UserIdentityMapping""".split()
)
"""Kinds that are not validated, but whose names have more characters than those of most kinds."""
# Kinds whose finalizers need no domain: the API server validates their metadata as that of custom resources.
_GROUPS_WITH_ANY_FINALIZER = frozenset(
    """admissionregistration.k8s.io apiextensions.k8s.io apiregistration.k8s.io coordination.k8s.io node.k8s.io
    policy""".split()
)
_ANY_FINALIZER = frozenset(("/Event",))
# Kinds whose objects get a new `generation`, whatever the manifest says.
_GROUPS_WITH_GENERATION = frozenset(("admissionregistration.k8s.io", "apiextensions.k8s.io"))
_WITH_GENERATION = frozenset(
    """CronJob DaemonSet Deployment DeviceClass DeviceTaintRule EndpointSlice FlowSchema Ingress IngressClass Job
    NetworkPolicy Pod PodDisruptionBudget PodTemplate PriorityClass PriorityLevelConfiguration ReplicaSet
    ReplicationController ResourceSlice StatefulSet""".split()
)


def validate_object(obj: Fields, release: Release, read_catalog: CatalogSource = no_catalog) -> list[Problem]:
    """Return the problems for which a release of Kubernetes rejects an object of one of its own kinds.

    `read_catalog` reads what is known of the cluster's devices.
    """
    kind = find_kind(obj)
    if kind is None:
        return []
    metadata, spec = as_mapping(obj.get("metadata")), as_mapping(obj.get("spec"))
    run = Validation(metadata, spec, [], release=release, read_catalog=read_catalog)
    kind.check(obj, (obj, None), run)
    return run.problems


def _find_name_format(kind: Kind | None, release: Release) -> NameFormat:
    if kind is None:
        return SUBDOMAIN_NAME
    since, older = kind.older_name_format or (release, kind.name_format)
    return kind.name_format if release >= since else older


def find_metadata_format(obj: Fields, release: Release = NEWEST_RELEASE) -> MetadataFormat:
    """Return what the metadata of an object's kind must fulfill."""
    return _find_metadata_format(as_text(obj.get("apiVersion")).rpartition("/")[0], as_text(obj.get("kind")), release)


@lru_cache(maxsize=512)
def _find_metadata_format(group: str, kind: str, release: Release) -> MetadataFormat:
    is_builtin = group in BUILTIN_GROUPS
    has_any_finalizer = group in _GROUPS_WITH_ANY_FINALIZER or f"{group}/{kind}" in _ANY_FINALIZER
    has_any_name = f"{group}/{kind}" in _PATH_SEGMENT_NAMES
    return MetadataFormat(
        PATH_SEGMENT_NAME if has_any_name else _find_name_format(_find_kind(group, kind), release),
        is_namespaced=kind not in CLUSTER_SCOPED and (group, kind) != ("scheduling.volcano.sh", "Queue"),
        qualifies_finalizers=is_builtin and not has_any_finalizer,
        keeps_generation=is_builtin and group not in _GROUPS_WITH_GENERATION and kind not in _WITH_GENERATION,
        is_stored=not is_answered(group),
    )


def find_kind(obj: Fields) -> Kind | None:
    """Return how objects of this kind are validated, if they are."""
    return _find_kind(as_text(obj.get("apiVersion")).rpartition("/")[0], as_text(obj.get("kind")))


@lru_cache(maxsize=512)
def _find_kind(group: str, kind: str) -> Kind | None:
    for module, kinds in MODULES.get(group, {}).items():
        if kind in kinds.split():
            found: Mapping[str, Kind] = import_module(f"{__name__}.{module}").KINDS
            return found[kind]
    return None
