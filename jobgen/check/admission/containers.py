"""Validate the containers and init containers of a pod, with their ports, probes and hooks."""

from __future__ import annotations

from jobgen.check.admission.env import validate_env, validate_env_from
from jobgen.check.admission.fields import (
    Fields,
    Validation,
    Validator,
    ValidatorTable,
    each,
    is_set,
    iter_mappings,
    join_names,
    list_set_keys,
    mapping,
    number,
    one_of,
    report_missing,
    report_unsupported,
    require_fields,
    text,
    validate_fields,
)
from jobgen.check.admission.names import DNS_LABEL, PORT_NAME, is_dns_label, is_header_name, is_port_name
from jobgen.check.admission.resources import validate_container_resources
from jobgen.check.admission.security import validate_container_security
from jobgen.check.admission.volumes import validate_volume_devices, validate_volume_mounts
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node, locatable, value_of
from jobgen.model.finding import FixStep

_PROTOCOLS = ("TCP", "UDP", "SCTP")

validate_port_number = number(1, 65535, rule="invalid-port")
_validate_port_name = text("invalid-port-name", "port name", is_port_name, PORT_NAME)


def validate_port_reference(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    """Validate the port of a probe or a hook: a number, or the name of a port."""
    if type(value_of(value)) is int:
        validate_port_number(key, value, owner, pod)
    else:
        _validate_port_name(key, value, owner, pod)


def validate_ports(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    """Validate the ports of one container."""
    if not isinstance(value, list):
        return
    names: set[str] = set()
    for port in value:
        if isinstance(port, dict):
            _validate_port(port, key, names, pod)


def _validate_port(port: Fields, parent: str, names: set[str], pod: Validation) -> None:
    node = port.get("containerPort")
    number = value_of(node)
    if number is None or number == 0:
        report_missing("a port", port, "containerPort", parent, pod)
    elif type(number) is int and not 0 < number < 65536:
        validate_port_number("containerPort", node, port, pod)
    if "name" in port:
        _validate_unique_port_name(port["name"], names, pod)
    if "protocol" in port and (protocol := as_text(port["protocol"])) and protocol not in _PROTOCOLS:
        report_unsupported("protocol", port["protocol"], _PROTOCOLS, pod)
    if "hostPort" in port and value_of(port["hostPort"]) != 0:
        validate_port_number("hostPort", port["hostPort"], port, pod)


def _validate_unique_port_name(value: Node, names: set[str], pod: Validation) -> None:
    name = as_text(value)
    if name and not is_port_name(name):
        pod.report("invalid-port-name", f"`{name}` is not a valid port name; {PORT_NAME}", value)
    elif name in names:
        pod.report("duplicate-port", f"two ports of the container are named `{name}`; rename one of them", value)
    elif name:
        names.add(name)


def validate_host_ports(containers: list[Node], pod: Validation) -> None:
    """Validate that no two of these containers use the same port of the host."""
    on_host = "hostNetwork" in pod.spec and pod.is_true("hostNetwork")
    used: set[tuple[str, str, int]] = set()
    for container in containers:
        if isinstance(container, dict) and isinstance(container.get("ports"), list):
            for port in container["ports"]:
                if isinstance(port, dict) and (on_host or "hostPort" in port):
                    _validate_host_port(port, used, pod, on_host=on_host)


def _validate_host_port(port: Fields, used: set[tuple[str, str, int]], pod: Validation, *, on_host: bool) -> None:
    container_port, host_port = value_of(port.get("containerPort")), value_of(port.get("hostPort"))
    # On the host's network `hostPort` defaults to `containerPort`.
    number = host_port or (on_host and container_port)
    if type(number) is not int or number == 0:
        return
    endpoint = (as_text(port.get("protocol")) or "TCP", as_text(port.get("hostIP")), number)
    if endpoint in used:
        message = f"two ports of the pod use port `{number}` of the host; change one of them"
        pod.report("duplicate-port", message, port["hostPort" if host_port else "containerPort"])
    used.add(endpoint)


def validate_host_network_ports(pod: Validation) -> None:
    """Validate that on the host's network the port of a container is that of the host."""
    for container in pod.iter_containers("containers"):
        for port in iter_mappings(container.get("ports")):
            container_port, host_port = value_of(port.get("containerPort")), value_of(port.get("hostPort"))
            if type(host_port) is int and host_port not in (0, container_port):
                ports = f"`hostPort` is `{host_port}`, but `containerPort` is `{container_port}`"
                message = f"{ports}; set both to the same number, because `hostNetwork` is true"
                pod.report("host-port-mismatch", message, port["hostPort"])


_PROBE_RULE = "invalid-probe"
_DEFAULT_GRACE_PERIOD = 30
_LIFECYCLE = ("postStart", "preStop", "stopSignal")

_validate_header_name = text(_PROBE_RULE, "header name", is_header_name, "use letters, digits and `-`")


_SLEEP_ZERO_SINCE = (1, 33)


def _validate_sleep(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    grace_period = value_of(pod.spec.get("terminationGracePeriodSeconds"))
    if grace_period is None:
        grace_period = _DEFAULT_GRACE_PERIOD
    elif type(grace_period) is int and grace_period < 0:
        # Kubernetes treats a negative period as one second.
        grace_period = 1
    least = 0 if pod.release >= _SLEEP_ZERO_SINCE else 1
    node = value.get("seconds") if isinstance(value, dict) else None
    seconds = value_of(node)
    if type(seconds) is int and type(grace_period) is int and not least <= seconds <= grace_period:
        limit = f"between {least} and `terminationGracePeriodSeconds`, which is {grace_period}"
        pod.report(_PROBE_RULE, f"`sleep` is `{seconds}` seconds, but must be {limit}", node)


_validate_exec = mapping({}, "command")
_validate_http_get = mapping(
    {
        "port": validate_port_reference,
        "scheme": one_of("", "HTTP", "HTTPS"),
        "httpHeaders": each(mapping({"name": _validate_header_name}, "name")),
    },
    "port",
)
_validate_tcp_socket = mapping({"port": validate_port_reference}, "port")
_validate_grpc = mapping({"port": validate_port_number}, "port")

_HANDLERS: ValidatorTable = {"exec": _validate_exec, "httpGet": _validate_http_get, "tcpSocket": _validate_tcp_socket}
_PROBE_HANDLERS: ValidatorTable = {**_HANDLERS, "grpc": _validate_grpc}
_HOOK_HANDLERS: ValidatorTable = {**_HANDLERS, "sleep": _validate_sleep}


def _validate_one_handler(key: str, value: Fields, handlers: ValidatorTable, pod: Validation) -> None:
    given = list_set_keys(value, handlers)
    if not given:
        null = next((node for name, node in value.items() if name in handlers), None)
        message = f"`{key}` has no handler; set one of {join_names(list(handlers), 'or')}"
        pod.report(_PROBE_RULE, message, locatable(null, key))
    elif len(given) > 1:
        message = f"`{key}` has {len(given)} handlers: {join_names(given, 'and')}; keep one of them"
        pod.report(_PROBE_RULE, message, given[-1])


def _validate_hook(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    if isinstance(value, dict):
        validate_fields(value, _HOOK_HANDLERS, pod)
        _validate_one_handler(key, value, _HOOK_HANDLERS, pod)


def _validate_probe(table: ValidatorTable) -> Validator:
    """Return a validator for a probe: the fields of all probes, and those of the table."""
    fields = {**_PROBE_HANDLERS, **_PROBE, **table}

    def validate(key: str, value: Node, owner: Fields, pod: Validation) -> None:
        if isinstance(value, dict):
            validate_fields(value, fields, pod)
            _validate_one_handler(key, value, _PROBE_HANDLERS, pod)

    return validate


def _forbid_grace_period(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    if is_set(value):
        pod.report(_PROBE_RULE, f"`{key}` cannot be set for a readiness probe; delete it", key)


_PROBE: ValidatorTable = {
    "initialDelaySeconds": number(0),
    "timeoutSeconds": number(0),
    "periodSeconds": number(0),
    "failureThreshold": number(0),
}
_validate_restarting_probe = _validate_probe(
    {"successThreshold": number(1, 1, allow_zero=True), "terminationGracePeriodSeconds": number(1)}
)
_validate_readiness_probe = _validate_probe(
    {"successThreshold": number(0), "terminationGracePeriodSeconds": _forbid_grace_period}
)

PROBES: ValidatorTable = {
    "lifecycle": mapping({"postStart": _validate_hook, "preStop": _validate_hook}),
    "livenessProbe": _validate_restarting_probe,
    "readinessProbe": _validate_readiness_probe,
    "startupProbe": _validate_restarting_probe,
}


def _forbid_lifecycle(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    """Forbid hooks. The API server drops `stopSignal`, and the lifecycle if nothing else is in it."""
    fields = list_set_keys(as_mapping(value), _LIFECYCLE)
    if fields != ["stopSignal"]:
        _forbid_probe(key, value, owner, pod)


def _forbid_probe(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    if is_set(value):
        message = f"an init container cannot have `{key}` without `restartPolicy: Always`; delete it"
        pod.report("probe-of-init-container", message, key)


FORBIDDEN_PROBES: ValidatorTable = {**dict.fromkeys(PROBES, _forbid_probe), "lifecycle": _forbid_lifecycle}
"""The probes and hooks that an init container cannot have unless it is a sidecar."""


_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_POLICY_RULE = "invalid-container-policy"
# From this release to the next, the API server drops policies and rules for restarts of containers, but for sidecars.
_RESTARTS_DROPPED, _RESTARTS_SINCE = (1, 34), (1, 35)
# What Go's strings.TrimSpace removes; Python's strip removes four separators more.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def validate_containers(key: str, value: Node, owner: Fields, pod: Validation) -> None:
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


def validate_init_containers(key: str, value: Node, owner: Fields, pod: Validation) -> None:
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


def validate_ephemeral_containers(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    """Report ephemeral containers, which can only be added to a running pod."""
    if isinstance(value, list) and value:
        message = "`ephemeralContainers` can only be added to a running pod; delete them"
        pod.report("ephemeral-container-in-template", message, key)


def _validate_name_and_image(container: Fields, names: set[str], parent: str, pod: Validation) -> None:
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


def _validate_resize_policy(key: str, value: Node, owner: Fields, pod: Validation) -> None:
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


def _validate_init_resize_policy(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    _validate_resize_policy(key, value, owner, pod)
    for policy in iter_mappings(value):
        if value_of(policy.get("restartPolicy")) == "RestartContainer" and value_of(pod.restart_policy) != "Never":
            message = (
                "`RestartContainer` cannot be set for an init container that is not a sidecar; delete the resize policy"
            )
            pod.report(_POLICY_RULE, message, policy["restartPolicy"])


def _validate_restart_policy(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    if pod.release >= _RESTARTS_SINCE:
        _validate_any_restart_policy(key, value, owner, pod)
    elif pod.release < _RESTARTS_DROPPED and is_set(value):
        message = "only init containers can have `restartPolicy` before Kubernetes 1.35; delete it"
        pod.report(_POLICY_RULE, message, value)


def _validate_init_restart_policy(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    if pod.release >= _RESTARTS_SINCE:
        _validate_any_restart_policy(key, value, owner, pod)
    elif pod.release < _RESTARTS_DROPPED:
        _validate_sidecar_restart_policy(key, value, owner, pod)


_validate_any_restart_policy = one_of(*_RESTART_POLICIES)
_validate_sidecar_restart_policy = one_of("Always")


def _validate_restart_rules(key: str, value: Node, owner: Fields, pod: Validation) -> None:
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


def _validate_exit_codes(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    if isinstance(value, list) and len(value) > 255:
        pod.report(_POLICY_RULE, f"there are `{len(value)}` exit codes; the maximum is 255", key)


_RESIZE_POLICY: ValidatorTable = {
    "resourceName": one_of("", "cpu", "memory"),
    "restartPolicy": one_of("", "NotRequired", "RestartContainer"),
}
_RESTART_RULE: ValidatorTable = {
    "action": one_of("", "Restart", "RestartAllContainers"),
    "exitCodes": mapping({"operator": one_of("", "In", "NotIn"), "values": _validate_exit_codes}, "operator"),
}
_SHARED: ValidatorTable = {
    "env": validate_env,
    "envFrom": validate_env_from,
    "imagePullPolicy": one_of("", "Always", "IfNotPresent", "Never"),
    "ports": validate_ports,
    "resources": validate_container_resources,
    "resizePolicy": _validate_resize_policy,
    "restartPolicy": _validate_restart_policy,
    "restartPolicyRules": _validate_restart_rules,
    "securityContext": validate_container_security,
    "terminationMessagePolicy": one_of("", "File", "FallbackToLogsOnError"),
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
