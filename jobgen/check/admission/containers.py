"""Validate the containers and init containers of a pod."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.env import validate_env, validate_env_from
from jobgen.check.admission.fields import (
    Validation,
    ValidatorTable,
    is_set,
    iter_mappings,
    report_missing,
    report_unsupported,
    require_fields,
    validate_enum,
    validate_fields,
    validate_mapping,
)
from jobgen.check.admission.mounts import validate_volume_devices, validate_volume_mounts
from jobgen.check.admission.names import DNS_LABEL, is_dns_label
from jobgen.check.admission.network import validate_host_network_ports, validate_host_ports, validate_ports
from jobgen.check.admission.probes import FORBIDDEN_PROBES, PROBES
from jobgen.check.admission.resources import validate_container_resources
from jobgen.check.admission.security import validate_container_security
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node, value_of
from jobgen.model.finding import FixStep

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_POLICY_RULE = "invalid-container-policy"
# From this release to the next, the API server drops policies and rules for restarts of containers, but for sidecars.
_RESTARTS_DROPPED, _RESTARTS_SINCE = (1, 34), (1, 35)
# What Go's strings.TrimSpace removes; Python's strip removes four separators more.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def validate_containers(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate the containers of the pod."""
    if not isinstance(value, list):
        return
    names: set[str] = set()
    for container in value:
        if isinstance(container, dict):
            _validate_name_and_image(container, names, key, pod)
            validate_fields(container, _CONTAINER, pod)
    validate_host_ports(value, pod)
    if "hostNetwork" in pod.spec and pod.is_true("hostNetwork"):
        validate_host_network_ports(pod)


def validate_init_containers(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate the init containers of the pod; with `restartPolicy: Always` they are sidecars."""
    if not isinstance(value, list):
        return
    names = {as_text(container.get("name")) for container in iter_mappings(pod.spec.get("containers"))} - {""}
    for container in value:
        if isinstance(container, dict):
            _validate_name_and_image(container, names, key, pod)
            is_sidecar = "restartPolicy" in container and value_of(container["restartPolicy"]) == "Always"
            validate_fields(container, _SIDECAR if is_sidecar else _INIT_CONTAINER, pod)
            if "ports" in container:
                validate_host_ports([container], pod)


def validate_ephemeral_containers(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Report ephemeral containers, which can only be added to a running pod."""
    if isinstance(value, list) and value:
        message = "`ephemeralContainers` can only be added to a running pod; delete them"
        pod.report("ephemeral-container-in-template", message, key)


def _validate_name_and_image(container: Mapping[str, Node], names: set[str], parent: str, pod: Validation) -> None:
    name = value_of(container.get("name"))
    if name is None or name == "":
        report_missing("a container", container, "name", parent, pod)
    elif type(name) is str:
        if not is_dns_label(name):
            message = f"`{name}` is not a valid container name; {DNS_LABEL}"
            pod.report("invalid-container-name", message, container["name"])
        if name in names:
            message = f"two containers of the pod are named `{name}`; rename one of them"
            pod.report("duplicate-container-name", message, container["name"])
        names.add(name)
    image = value_of(container.get("image"))
    if image is None or image == "":
        if not pod.needs_images:
            return
        report_missing(f"container `{name}`" if name else "a container", container, "image", parent, pod)
    elif type(image) is str and image.strip() != image and image.strip(_SPACE) != image:
        node = container["image"]
        fix = ((FixStep("set", node, image.strip(_SPACE)),), True)
        pod.report(
            "image-name-whitespace",
            f"the image `{image}` starts or ends with whitespace; delete the whitespace",
            node,
            fix,
        )


def _validate_resize_policy(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    names: set[str] = set()
    for policy in iter_mappings(value):
        validate_fields(policy, _RESIZE_POLICY, pod)
        require_fields("a resize policy", policy, ("resourceName", "restartPolicy"), key, pod)
        name, restart_policy = as_text(policy.get("resourceName")), as_text(policy.get("restartPolicy"))
        if name and name in names:
            message = f"two resize policies are for `{name}`; delete one of them"
            pod.report(_POLICY_RULE, message, policy["resourceName"])
        names.add(name)
        if restart_policy == "RestartContainer" and value_of(pod.restart_policy) == "Never":
            message = (
                "`RestartContainer` cannot be set if `restartPolicy` of the pod is `Never`; delete the resize policy"
            )
            pod.report(_POLICY_RULE, message, policy["restartPolicy"])


def _validate_init_resize_policy(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    _validate_resize_policy(key, value, owner, pod)
    for policy in iter_mappings(value):
        if value_of(policy.get("restartPolicy")) == "RestartContainer" and value_of(pod.restart_policy) != "Never":
            message = (
                "`RestartContainer` cannot be set for an init container that is not a sidecar; delete the resize policy"
            )
            pod.report(_POLICY_RULE, message, policy["restartPolicy"])


def _validate_restart_policy(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    if pod.release >= _RESTARTS_SINCE:
        _validate_any_restart_policy(key, value, owner, pod)
    elif pod.release < _RESTARTS_DROPPED and is_set(value):
        message = "only init containers can have `restartPolicy` before Kubernetes 1.35; delete it"
        pod.report(_POLICY_RULE, message, value)


def _validate_init_restart_policy(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    if pod.release >= _RESTARTS_SINCE:
        _validate_any_restart_policy(key, value, owner, pod)
    elif pod.release < _RESTARTS_DROPPED:
        _validate_sidecar_restart_policy(key, value, owner, pod)


_validate_any_restart_policy = validate_enum(*_RESTART_POLICIES)
_validate_sidecar_restart_policy = validate_enum("Always")


def _validate_restart_rules(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    if not isinstance(value, list) or not value or pod.release < _RESTARTS_SINCE:
        return
    require_fields("a container with `restartPolicyRules`", owner, ("restartPolicy",), key, pod)
    if len(value) > 20:
        pod.report(_POLICY_RULE, f"there are `{len(value)}` restart rules; the maximum is 20", key)
    for rule in iter_mappings(value):
        validate_fields(rule, _RESTART_RULE, pod)
        require_fields("a restart rule", rule, ("action",), key, pod)
        if not is_set(rule.get("exitCodes")):
            report_missing("a restart rule", rule, "exitCodes", key, pod)


def _validate_exit_codes(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    if isinstance(value, list) and len(value) > 255:
        pod.report(_POLICY_RULE, f"there are `{len(value)}` exit codes; the maximum is 255", key)


_RESIZE_POLICY: ValidatorTable = {
    "resourceName": validate_enum("", "cpu", "memory"),
    "restartPolicy": validate_enum("", "NotRequired", "RestartContainer"),
}
_RESTART_RULE: ValidatorTable = {
    "action": validate_enum("", "Restart", "RestartAllContainers"),
    "exitCodes": validate_mapping(
        {"operator": validate_enum("", "In", "NotIn"), "values": _validate_exit_codes}, "operator"
    ),
}
_SHARED: ValidatorTable = {
    "env": validate_env,
    "envFrom": validate_env_from,
    "imagePullPolicy": validate_enum("", "Always", "IfNotPresent", "Never"),
    "ports": validate_ports,
    "resources": validate_container_resources,
    "resizePolicy": _validate_resize_policy,
    "restartPolicy": _validate_restart_policy,
    "restartPolicyRules": _validate_restart_rules,
    "securityContext": validate_container_security,
    "terminationMessagePolicy": validate_enum("", "File", "FallbackToLogsOnError"),
    "volumeDevices": validate_volume_devices,
    "volumeMounts": validate_volume_mounts,
}
_CONTAINER: ValidatorTable = {**_SHARED, **PROBES}
_SIDECAR: ValidatorTable = {**_CONTAINER, "restartPolicy": _validate_init_restart_policy}
_INIT_CONTAINER: ValidatorTable = {
    **_SHARED,
    **FORBIDDEN_PROBES,
    "resizePolicy": _validate_init_resize_policy,
    "restartPolicy": _validate_init_restart_policy,
}


def validate_pod_restart_policy(pod: Validation, supported: tuple[str, ...] = ()) -> None:
    """Validate the restart policy that the operator sets for the pod; an operator may support others than pods do."""
    found = value_of(pod.restart_policy)
    if type(found) is str and found and found not in _RESTART_POLICIES:
        report_unsupported("restartPolicy", pod.restart_policy, supported or _RESTART_POLICIES, pod, _RESTART_POLICIES)
