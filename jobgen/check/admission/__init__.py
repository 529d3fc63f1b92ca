"""Validate pod templates as the API server of Kubernetes 1.36 validates pods.

The API server accepts a job with any pod template that fits the schema; it validates the pods only when the operator
creates them. This package does so before, with the defaults that the API server sets first. Tables map fields to
validators, so that only the fields of a template cost time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobgen.check.admission.containers import (
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
    validate_pod_restart_policy,
)
from jobgen.check.admission.fields import (
    Validation,
    ValidatorTable,
    find_key,
    is_empty,
    report_missing,
    validate_all,
    validate_enum,
    validate_fields,
    validate_mapping,
    validate_number,
    validate_string,
)
from jobgen.check.admission.metadata import validate_finalizers, validate_labels
from jobgen.check.admission.names import DNS_SUBDOMAIN, is_dns_subdomain
from jobgen.check.admission.network import (
    validate_dns_config,
    validate_dns_policy,
    validate_host_aliases,
    validate_hostname,
    validate_hostname_override,
)
from jobgen.check.admission.pod_annotations import validate_annotation_values, validate_pod_annotations
from jobgen.check.admission.resources import validate_overhead, validate_pod_resources, validate_resource_claims
from jobgen.check.admission.scheduling import (
    validate_affinity,
    validate_readiness_gates,
    validate_scheduling_gates,
    validate_tolerations,
    validate_topology_spread,
)
from jobgen.check.admission.security import (
    validate_host_users,
    validate_os,
    validate_pod_security,
    validate_process_namespace,
)
from jobgen.check.admission.volumes import index_volumes, validate_volumes
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.releases import NEWEST_RELEASE, Release
from jobgen.model.data import Node, value_of
from jobgen.model.finding import Problem

_DNS_POLICIES = ("", "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_validate_object_name = validate_string("invalid-object-name", "object name", is_dns_subdomain, DNS_SUBDOMAIN)
_validate_class_name = validate_string(
    "invalid-object-name", "object name", is_dns_subdomain, DNS_SUBDOMAIN, allow_empty=False
)


def _validate_service_account(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate the old name of `serviceAccountName`, which Kubernetes reads if that is not set."""
    if not as_text(owner.get("serviceAccountName")):
        _validate_object_name(key, value, owner, pod)


# Without fields of feature gates that are off by default: the API server drops those fields before it validates.
_SPEC: ValidatorTable = {
    "activeDeadlineSeconds": validate_number(1, 2**31 - 1),
    "affinity": validate_affinity,
    "containers": validate_containers,
    "dnsConfig": validate_dns_config,
    "dnsPolicy": validate_all(validate_enum(*_DNS_POLICIES), validate_dns_policy),
    "ephemeralContainers": validate_ephemeral_containers,
    "hostAliases": validate_host_aliases,
    "hostUsers": validate_host_users,
    "hostname": validate_hostname,
    "hostnameOverride": validate_hostname_override,
    "initContainers": validate_init_containers,
    "nodeName": _validate_object_name,
    "nodeSelector": validate_labels,
    "os": validate_os,
    "overhead": validate_overhead,
    "preemptionPolicy": validate_enum("PreemptLowerPriority", "Never"),
    "priorityClassName": _validate_object_name,
    "readinessGates": validate_readiness_gates,
    "resourceClaims": validate_resource_claims,
    "resources": validate_pod_resources,
    "runtimeClassName": _validate_class_name,
    "schedulingGates": validate_scheduling_gates,
    "securityContext": validate_pod_security,
    "serviceAccount": _validate_service_account,
    "serviceAccountName": _validate_object_name,
    "shareProcessNamespace": validate_process_namespace,
    "subdomain": validate_hostname,
    "tolerations": validate_tolerations,
    "topologySpreadConstraints": validate_topology_spread,
    "volumes": validate_volumes,
}
_METADATA: ValidatorTable = {
    "labels": validate_labels,
    "annotations": validate_pod_annotations,
    "finalizers": validate_finalizers,
}
_validate_metadata = validate_mapping(_METADATA)


# The API server drops these fields before the release whose feature gate is on by default.
_SINCE: Mapping[str, Release] = {
    "hostUsers": (1, 33),
    "hostnameOverride": (1, 35),
    "resourceClaims": (1, 34),
    "resources": (1, 34),
}


def _drop_newer_fields(spec: Mapping[str, Node], release: Release) -> Mapping[str, Node]:
    return {key: value for key, value in spec.items() if release >= _SINCE.get(key, release)}


def validate_pod_template(
    template: Node,
    restart_policy: Node = None,
    pod_name: str = "",
    *,
    restart_policies: Sequence[str] = (),
    added_volumes: Sequence[str] = (),
    needs_images: bool = True,
    is_object: bool = False,
    is_template: bool = False,
    count: int = 0,
    release: Release = NEWEST_RELEASE,
) -> list[Problem]:
    """Return the problems for which the API server rejects the pods of a template.

    `restart_policy` is the one that the operator sets for the pods; without it the template's applies.
    `restart_policies` are those that the operator supports, to suggest one of them. `added_volumes` are the names of
    claims that the operator adds to the volumes. Without `needs_images`, a container may lack its image, because
    another object sets it. `is_object` says that the pod is an object, whose metadata is validated like that of others;
    `is_template`, that the API server validates the template when it stores the object. With a `count`, `pod_name` is
    the name of the last of so many pods, which end in their index.
    """
    if not isinstance(template, dict):
        return []
    metadata, spec = as_mapping(template.get("metadata")), as_mapping(template.get("spec"))
    policy = restart_policy if value_of(restart_policy) is not None else spec.get("restartPolicy")
    volumes = index_volumes(spec["volumes"]) if "volumes" in spec else {}
    if added_volumes:
        volumes = {**{name: {"persistentVolumeClaim": {}} for name in added_volumes}, **volumes}
    pod = Validation(metadata, spec, [], volumes, policy, pod_name, needs_images, release)
    pod = pod._replace(is_template=is_template, pod_count=count, drops_nulls=not (is_object or is_template))
    if is_object:
        validate_annotation_values("annotations", metadata.get("annotations"), metadata, pod)
    elif metadata:
        _validate_metadata("metadata", metadata, template, pod)
    if not value_of(spec.get("containers")) and (spec or is_empty(template.get("spec"))):
        report_missing("a pod", spec, "containers", find_key(template, "spec", template), pod)
    validate_fields(spec if release >= NEWEST_RELEASE else _drop_newer_fields(spec, release), _SPEC, pod)
    validate_pod_restart_policy(pod, tuple(restart_policies))
    return pod.problems
