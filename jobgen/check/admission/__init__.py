"""Validate pod templates as the API server of Kubernetes 1.36 validates pods.

The API server accepts a job with any pod template that fits the schema; it validates the pods only when the operator
creates them. This package does so before, with the defaults that the API server sets first. Tables map fields to
validators, so that only the fields of a template cost time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from jobgen.check.admission.containers import (
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
    validate_pod_restart_policy,
)
from jobgen.check.admission.fields import (
    POD,
    Fields,
    Table,
    Validation,
    all_of,
    dns_label,
    dns_subdomain,
    each,
    find_entry,
    is_empty,
    iter_texts,
    mapping,
    number,
    one_of,
    text,
    validate_fields,
)
from jobgen.check.admission.metadata import (
    MAX_ANNOTATION_BYTES,
    validate_annotation_key,
    validate_annotation_size,
    validate_finalizers,
    validate_labels,
)
from jobgen.check.admission.names import has_backsteps, is_dns_subdomain, is_ip_address, is_search_domain
from jobgen.check.admission.scheduling import (
    validate_affinity,
    validate_overhead,
    validate_pod_resources,
    validate_readiness_gates,
    validate_resource_claims,
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
from jobgen.k8s.devices import no_catalog
from jobgen.k8s.kinds import NEWEST_RELEASE, Release
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.model.data import Plain
from jobgen.model.finding import Problem
from jobgen.model.place import At, Derived, Place
from jobgen.model.sentence import Sentence

_ANNOTATION_RULE = "invalid-annotation"
_LOCALHOST = "localhost/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_APPARMOR_CONTAINER = "container.apparmor.security.beta.kubernetes.io/"
# The values of the annotations for each type of profile in `securityContext`.
_PROFILE_VALUES = {"RuntimeDefault": ("runtime/default", "docker/default"), "Unconfined": ("unconfined",)}
_TOLERATION_FIELDS = {field.lower(): field for field in ("key", "operator", "value", "effect", "tolerationSeconds")}
_DNS_RULE = "invalid-dns-config"
_HOST_RULE = "invalid-host-name"
_MAX_NAMESERVERS = 3
_MAX_SEARCHES = 32
_MAX_SEARCH_LENGTH = 2048
_IP_ADDRESS = "write it like `10.9.8.7` or `2001:db8::1`"
_validate_host_domain = dns_subdomain(_HOST_RULE, "host name", allow_empty=False)
_validate_hostname = dns_label(_HOST_RULE, "host name")
_validate_object_name = dns_subdomain("invalid-object-name", "object name")
# The API server drops these fields before the release whose feature gate is on by default.
_SINCE = {"hostUsers": (1, 33), "hostnameOverride": (1, 35), "resourceClaims": (1, 34), "resources": (1, 34)}


def _validate_pod_annotations(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate annotations: their keys, their size, and the values that Kubernetes reads."""
    if not isinstance(value, dict):
        return
    size = 0
    for name, node in value.items():
        if node is None and pod.drops_nulls:
            continue
        if validate_annotation_key(name, value, pod) and type(node) is str:
            size += len(name) + len(node)
    _validate_annotation_values(key, value, owner, pod)
    # A character has at most four bytes; to count them is slow.
    if size > MAX_ANNOTATION_BYTES // 4:
        validate_annotation_size((owner, key), value, pod)


def _validate_annotation_values(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    for name, node in value.items() if isinstance(value, dict) else ():
        if "kubernetes.io/" not in name or type(node) is not str:
            continue
        if name == "controller.kubernetes.io/pod-deletion-cost":
            digits = node.removeprefix("-")
            is_integer = digits.isascii() and digits.isdigit() and len(digits) < 20
            # Kubernetes accepts leading zeros only after a minus.
            if not is_integer or (node[0] == "0" and node != "0") or not -(2**31) <= int(node) < 2**31:
                _report_value(name, node, "a 32-bit integer", At(value, name), pod)
        elif name == "scheduler.alpha.kubernetes.io/tolerations":
            _validate_tolerations_annotation(name, node, At(value, name), pod)
        elif name == "kubernetes.io/config.mirror" and not as_text(pod.spec.get("nodeName")):
            pod.report(
                _ANNOTATION_RULE,
                Sentence("`{}` requires `nodeName` in the pod spec; delete the annotation", name),
                (value, name),
            )
        elif name.startswith(_APPARMOR_CONTAINER):
            _validate_apparmor(name, node, as_mapping(value), pod)
        elif name == _SECCOMP_POD or name.startswith(_SECCOMP_CONTAINER):
            _validate_seccomp(name, node, At(value, name), pod)


def _report_value(name: str, found: str, wanted: str, place: At, pod: Validation) -> None:
    pod.report(_ANNOTATION_RULE, Sentence("`{}` is `{}`, but must be {}", name, found, wanted), place)


def _validate_tolerations_annotation(name: str, found: str, place: At, pod: Validation) -> None:
    items = _read_tolerations(found)
    if items is None:
        _report_value(name, found, "a JSON list of tolerations", place, pod)
        return
    inner = pod._replace(problems=[])
    validate_tolerations(name, items, pod.metadata, inner)
    for problem in inner.problems:
        message = Sentence("`{}` has an invalid toleration: {}", name, problem.sentence)
        pod.report(_ANNOTATION_RULE, message, place)


def _read_tolerations(text: str) -> list[Plain] | None:
    """Read tolerations as Go does: the case of keys does not count, null is empty. None if they cannot be read."""

    def reject_constant(name: str) -> None:
        raise ValueError(name)

    try:
        items = json.loads(text, parse_constant=reject_constant) if text else []
    except (ValueError, RecursionError):
        return None
    found: list[Plain] = []
    for item in [] if items is None else items if isinstance(items, list) else [items]:
        if item is not None and not (isinstance(item, dict) and isinstance(items, list)):
            return None
        toleration: dict[str, Any] = {}
        for key, value in (item or {}).items():
            field = _TOLERATION_FIELDS.get(key.lower(), "")
            if field and value is not None:
                if type(value) is not (int if field == "tolerationSeconds" else str):
                    return None
                toleration[field] = value
        found.append(toleration)
    return found


def _validate_seccomp(name: str, found: str, place: At, pod: Validation) -> None:
    """Validate a seccomp annotation of the pod or a container, which predates the field in `securityContext`."""
    path = found.removeprefix(_LOCALHOST)
    is_local = found.startswith(_LOCALHOST) and not path.startswith("/") and not has_backsteps(path)
    if found not in ("runtime/default", "docker/default", "unconfined") and not is_local:
        _report_value(name, found, "`runtime/default`, `unconfined` or `localhost/` and a relative path", place, pod)
    owner = pod.spec if name == _SECCOMP_POD else _find_container(name.removeprefix(_SECCOMP_CONTAINER), pod)
    _validate_same_profile(name, found, place, get_path(owner, "securityContext", "seccompProfile"), pod)


def _validate_apparmor(name: str, found: str, annotations: Fields, pod: Validation) -> None:
    """Validate an AppArmor annotation, which predates the field in `securityContext`."""
    container = _find_container(name.removeprefix(_APPARMOR_CONTAINER), pod)
    if not container:
        message = Sentence("`{}` does not name a container of the pod; end it with the name of one", name)
        pod.report(_ANNOTATION_RULE, message, (annotations, name))
    path = found.removeprefix(_LOCALHOST)
    if found not in ("", "runtime/default", "unconfined") and path == found:
        _report_value(name, found, "`runtime/default`, `unconfined` or `localhost/…`", At(annotations, name), pod)
    elif container and as_text(get_path(pod.spec, "os", "name")) != "windows":
        profile = as_mapping(get_path(container, "securityContext", "appArmorProfile"))
        # The API server makes a valid annotation the profile of the container.
        is_local = path != "" and path.strip() == path and len(path) < 4096
        is_profile = bool(found) and (path == found or is_local)
        if not profile and (pod.is_template or not is_profile):
            profile = as_mapping(get_path(pod.spec, "securityContext", "appArmorProfile"))
        _validate_same_profile(name, found, At(annotations, name), profile, pod)


def _validate_same_profile(name: str, found: str, place: At, context: Plain, pod: Validation) -> None:
    """Validate that the annotation agrees with the profile in `securityContext`, if there is one."""
    profile = as_mapping(context)
    profile_type = as_text(profile.get("type"))
    values = _PROFILE_VALUES.get(profile_type, (f"{_LOCALHOST}{as_text(profile.get('localhostProfile'))}",))
    if name.startswith(_APPARMOR_CONTAINER):
        values = values[:1]
    if profile_type in ("RuntimeDefault", "Unconfined", "Localhost") and found not in values:
        _report_value(name, found, f"`{values[0]}` as in the security context", place, pod)


def _find_container(name: str, pod: Validation) -> Fields:
    containers = pod.iter_containers("containers", "initContainers")
    return next((one for one in containers if as_text(one.get("name")) == name), {})


def _validate_nameservers(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    if isinstance(value, list) and len(value) > _MAX_NAMESERVERS:
        pod.report(
            _DNS_RULE,
            Sentence("there are `{}` nameservers; the maximum is {}", len(value), _MAX_NAMESERVERS),
            (owner, key),
        )


def _validate_searches(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    if not isinstance(value, list):
        return
    length = len(" ".join(found for found, _ in iter_texts(value)))
    if len(value) > _MAX_SEARCHES or length > _MAX_SEARCH_LENGTH:
        maximum = f"the maximum is {_MAX_SEARCHES} with {_MAX_SEARCH_LENGTH} characters"
        pod.report(
            _DNS_RULE,
            Sentence("there are `{}` searches with `{}` characters; {}", len(value), length, maximum),
            (owner, key),
        )
    is_valid = is_search_domain if pod.release >= (1, 33) else is_dns_subdomain
    for found, node in iter_texts(value):
        if not is_valid(found):
            pod.report(
                _DNS_RULE, Sentence("`{}` is not a valid search domain; use a name like `example.com`", found), node
            )


def _validate_dns_policy(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate that the policy `None` has nameservers in `dnsConfig`."""
    if value != "None":
        return
    config = pod.spec.get("dnsConfig")
    if not isinstance(config, dict):
        pod.report_missing("`dnsPolicy: None`", {}, "dnsConfig", At(owner, key))
    elif is_empty(config.get("nameservers")):
        pod.report_missing("`dnsPolicy: None`", config, "nameservers", At(owner, key))


def _validate_hostname_override(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate the host name that replaces the one of Kubernetes."""
    if type(value) is not str:
        return
    _validate_host_domain(key, value, owner, pod)
    if len(value) > 64:
        pod.report(
            _HOST_RULE, Sentence("`{}` must have at most 64 characters, got `{}`", key, len(value)), At(owner, key)
        )
    for flag in ("setHostnameAsFQDN", "hostNetwork"):
        if pod.is_true(flag):
            pod.report(
                _HOST_RULE,
                Sentence("`{}` cannot be set if `{}` is true; delete one of them", key, flag),
                At(owner, key),
            )


def _validate_service_account(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate the old name of `serviceAccountName`, which Kubernetes reads if that is not set."""
    if not as_text(owner.get("serviceAccountName")):
        _validate_object_name(key, value, owner, pod)


def validate_pod_template(
    template: Plain,
    restart_policy: object = None,
    pod_name: str = "",
    *,
    policy_place: Place = None,
    restart_policies: Sequence[str] = (),
    added_volumes: Sequence[str] = (),
    needs_images: bool = True,
    is_object: bool = False,
    is_template: bool = False,
    count: int = 0,
    release: Release = NEWEST_RELEASE,
) -> list[Problem]:
    """Return the problems for which the API server rejects the pods of a template.

    `restart_policy` is the one that the operator sets for the pods, from `policy_place`; without it the template's
    applies.
    `restart_policies` are those that the operator supports, to suggest one of them. `added_volumes` are the names of
    claims that the operator adds to the volumes. Without `needs_images`, a container may lack its image, because
    another object sets it. `is_object` says that the pod is an object, whose metadata is validated like that of others;
    `is_template`, that the API server validates the template when it stores the object. With a `count`, `pod_name` is
    the name of the last of so many pods, which end in their index.
    """
    if not isinstance(template, dict):
        return []
    metadata, spec = as_mapping(template.get("metadata")), as_mapping(template.get("spec"))
    policy = spec.get("restartPolicy") if restart_policy is None else restart_policy
    volumes = index_volumes(spec["volumes"]) if "volumes" in spec else {}
    if added_volumes:
        volumes = {**{name: {"persistentVolumeClaim": {}} for name in added_volumes}, **volumes}
    # Without keywords, which cost time for every pod.
    about_pod = (volumes, policy, pod_name, needs_images, is_template, count, not (is_object or is_template))
    pod = Validation(metadata, spec, [], POD, release, no_catalog, *about_pod, policy_place)
    if is_object:
        _validate_annotation_values("annotations", metadata.get("annotations"), metadata, pod)
    elif metadata:
        _validate_metadata("metadata", metadata, template, pod)
    if not spec.get("containers") and (spec or is_empty(template.get("spec"))):
        pod.report_missing("a pod", spec, "containers", find_entry(template, "spec", (template, None)))
    if release < NEWEST_RELEASE:
        spec = Derived({key: value for key, value in spec.items() if release >= _SINCE.get(key, release)}, spec)
    validate_fields(spec, _SPEC, pod)
    validate_pod_restart_policy(pod, tuple(restart_policies))
    return pod.problems


def validate_pod_patch(
    patch: Plain, *, replaces_resources: bool = False, release: Release = NEWEST_RELEASE
) -> list[Problem]:
    """Return the problems that the fields of a patch give to every pod that they are merged into.

    Another object has the rest of the pod, so what is missing, and what refers to other fields, may be there. With
    `replaces_resources`, the resources of containers replace those of the other object.
    """
    known = _OF_ONE_VALUE | {"missing-resource-limit"} if replaces_resources else _OF_ONE_VALUE
    problems = validate_pod_template(patch, needs_images=False, release=release)
    return [problem for problem in problems if problem.rule in known]


_OF_ONE_VALUE = frozenset(
    """conflicting-mount conflicting-volume-source fractional-device gpu-request-limit-mismatch invalid-config-key
    invalid-container-name invalid-env-name invalid-env-source invalid-finalizer invalid-gate invalid-label
    invalid-object-name invalid-quantity invalid-security-profile invalid-selector invalid-toleration
    invalid-volume-name invalid-volume-path invalid-volume-source negative-quantity out-of-range request-exceeds-limit
    unknown-resource unsupported-field-ref unsupported-value""".split()
)
# Without fields of feature gates that are off by default: the API server drops those fields before it validates.
_SPEC: Table = {
    "activeDeadlineSeconds": number(1, 2**31 - 1),
    "affinity": validate_affinity,
    "containers": validate_containers,
    "dnsConfig": mapping(
        {
            "nameservers": all_of(
                _validate_nameservers,
                each(text(_DNS_RULE, "IP address", is_ip_address, _IP_ADDRESS, allow_empty=False)),
            ),
            "searches": _validate_searches,
            "options": each(mapping({}, "name", what="`options`")),
        }
    ),
    "dnsPolicy": all_of(one_of("", "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"), _validate_dns_policy),
    "ephemeralContainers": validate_ephemeral_containers,
    "hostAliases": each(
        mapping(
            {
                "ip": text(_HOST_RULE, "IP address", is_ip_address, _IP_ADDRESS),
                "hostnames": each(_validate_host_domain),
            },
            "ip",
            what="`hostAliases`",
        )
    ),
    "hostUsers": validate_host_users,
    "hostname": _validate_hostname,
    "hostnameOverride": _validate_hostname_override,
    "initContainers": validate_init_containers,
    "nodeName": _validate_object_name,
    "nodeSelector": validate_labels,
    "os": validate_os,
    "overhead": validate_overhead,
    "preemptionPolicy": one_of("PreemptLowerPriority", "Never"),
    "priorityClassName": _validate_object_name,
    "readinessGates": validate_readiness_gates,
    "resourceClaims": validate_resource_claims,
    "resources": validate_pod_resources,
    "runtimeClassName": dns_subdomain("invalid-object-name", "object name", allow_empty=False),
    "schedulingGates": validate_scheduling_gates,
    "securityContext": validate_pod_security,
    "serviceAccount": _validate_service_account,
    "serviceAccountName": _validate_object_name,
    "shareProcessNamespace": validate_process_namespace,
    "subdomain": _validate_hostname,
    "tolerations": validate_tolerations,
    "topologySpreadConstraints": validate_topology_spread,
    "volumes": validate_volumes,
}
_validate_metadata = mapping(
    {"labels": validate_labels, "annotations": _validate_pod_annotations, "finalizers": validate_finalizers}
)
