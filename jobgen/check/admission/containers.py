"""Validate the containers and init containers of a pod, with their ports, probes and hooks."""

from __future__ import annotations

from collections.abc import Iterable

from jobgen.check.admission.env import validate_env, validate_env_from
from jobgen.check.admission.fields import (
    Entry,
    Fields,
    Table,
    Validation,
    Validator,
    each,
    fields,
    is_set,
    join_names,
    list_mappings,
    list_set_keys,
    mapping,
    number,
    one_of,
    require_set,
    text,
    validate_fields,
)
from jobgen.check.admission.names import DNS_LABEL, PORT_NAME, is_dns_label, is_header_name, is_port_name
from jobgen.check.admission.scheduling import validate_container_resources
from jobgen.check.admission.security import validate_container_security
from jobgen.check.admission.volumes import validate_volume_devices, validate_volume_mounts
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Plain
from jobgen.model.finding import FixStep
from jobgen.model.place import At
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import list_alternatives

_MOST_NAMED = 4
"""How many containers a message lists."""
_PROTOCOLS = ("TCP", "UDP", "SCTP")

validate_port_number = number(1, 65535, rule="invalid-port")
_validate_port_name = text("invalid-port-name", "port name", is_port_name, PORT_NAME)
_PROBE_RULE = "invalid-probe"
_validate_header_name = text(_PROBE_RULE, "header name", is_header_name, "use letters, digits and `-`")
_PROBE: Table = dict.fromkeys(("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "failureThreshold"), number(0))
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_POLICY_RULE = "invalid-container-policy"
# From this release to the next, the API server drops policies and rules for restarts of containers, but for sidecars.
_RESTARTS_DROPPED, _RESTARTS_SINCE = (1, 34), (1, 35)
# What Go's strings.TrimSpace removes; Python's strip removes four separators more.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_validate_resize_fields = mapping(
    {},
    fields(
        "a resize policy",
        {"resourceName": one_of("", "cpu", "memory"), "restartPolicy": one_of("", "NotRequired", "RestartContainer")},
        "resourceName",
        "restartPolicy",
    ),
)
_validate_any_restart_policy = one_of(*_RESTART_POLICIES)
_validate_sidecar_restart_policy = one_of("Always")


def validate_port_reference(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate the port of a probe or a hook: a number, or the name of a port."""
    if type(value) is int:
        validate_port_number(key, value, owner, pod)
    else:
        _validate_port_name(key, value, owner, pod)


def validate_ports(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate the ports of one container."""
    names: set[str] = set()
    for port in list_mappings(value):
        node, name = port.get("containerPort"), as_text(port.get("name"))
        if node is None or node == 0:
            pod.report_missing("a port", port, "containerPort", (owner, key))
        elif type(node) is int and not 0 < node < 65536:
            validate_port_number("containerPort", node, port, pod)
        if name and not is_port_name(name):
            pod.report(
                "invalid-port-name", Sentence("`{}` is not a valid port name; {}", name, PORT_NAME), At(port, "name")
            )
        elif name and name in names:
            message = Sentence("two ports of the container are named `{}`; rename one of them", name)
            pod.report("duplicate-port", message, At(port, "name"))
        names.add(name)
        if "protocol" in port and (protocol := as_text(port["protocol"])) and protocol not in _PROTOCOLS:
            pod.report_unsupported("protocol", At(port, "protocol"), _PROTOCOLS)
        if "hostPort" in port and port["hostPort"] != 0:
            validate_port_number("hostPort", port["hostPort"], port, pod)


def _validate_host_ports(containers: list[Plain], pod: Validation) -> None:
    """Validate that no two of these containers use the same port of the host."""
    on_host = "hostNetwork" in pod.spec and pod.is_true("hostNetwork")
    used: set[tuple[str, str, int]] = set()
    with_ports = [container["ports"] for container in list_mappings(containers) if "ports" in container]
    for port in (port for ports in with_ports for port in list_mappings(ports)) if with_ports else ():
        host_port = port.get("hostPort")
        # On the host's network `hostPort` defaults to `containerPort`.
        number = host_port or (on_host and port.get("containerPort"))
        if type(number) is int and number:
            endpoint = (as_text(port.get("protocol")) or "TCP", as_text(port.get("hostIP")), number)
            if endpoint in used:
                message = Sentence("two ports of the pod use port `{}` of the host; change one of them", number)
                pod.report("duplicate-port", message, At(port, "hostPort" if host_port else "containerPort"))
            used.add(endpoint)


def _check_sleep(sleep: Fields, entry: Entry, pod: Validation) -> None:
    grace_period = pod.spec.get("terminationGracePeriodSeconds")
    if grace_period is None:
        grace_period = 30
    elif type(grace_period) is int and grace_period < 0:
        # Kubernetes treats a negative period as one second.
        grace_period = 1
    least = 0 if pod.release >= (1, 33) else 1
    seconds = sleep.get("seconds")
    if type(seconds) is int and type(grace_period) is int and not least <= seconds <= grace_period:
        limit = f"between {least} and `terminationGracePeriodSeconds`, which is {grace_period}"
        pod.report(
            _PROBE_RULE, Sentence("`sleep` is `{}` seconds, but must be {}", seconds, limit), At(sleep, "seconds")
        )


def _handler(handlers: Table, other_fields: Table) -> Validator:
    """Return a validator for a probe or a hook, which has one of the handlers and other fields."""

    def check(value: Fields, entry: Entry, pod: Validation) -> None:
        given = list_set_keys(value, handlers)
        if not given:
            null = next((name for name in value if name in handlers), None)
            message = Sentence("`{}` has no handler; set one of {}", entry[1], join_names(list(handlers), "or"))
            pod.report(_PROBE_RULE, message, entry if null is None else At(value, null))
        elif len(given) > 1:
            message = Sentence(
                "`{}` has {} handlers: {}; keep one of them", entry[1], len(given), join_names(given, "and")
            )
            pod.report(_PROBE_RULE, message, (value, given[-1]))

    return mapping({**handlers, **other_fields}, check)


def _forbid_grace_period(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    if is_set(value):
        pod.report(_PROBE_RULE, Sentence("`{}` cannot be set for a readiness probe; delete it", key), (owner, key))


def _forbid_lifecycle(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Forbid hooks. The API server drops `stopSignal`, and the lifecycle if nothing else is in it."""
    if list_set_keys(as_mapping(value), ("postStart", "preStop", "stopSignal")) != ["stopSignal"]:
        _forbid_probe(key, value, owner, pod)


def _forbid_probe(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    if is_set(value):
        message = Sentence("an init container cannot have `{}` without `restartPolicy: Always`; delete it", key)
        pod.report("probe-of-init-container", message, (owner, key))


def validate_containers(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate the containers of the pod."""
    if not isinstance(value, list):
        return
    names: set[str] = set()
    containers = list_mappings(value)
    for container in containers:
        _validate_name_and_image(container, containers, names, (owner, key), pod)
        validate_fields(container, _CONTAINER, pod)
    _validate_host_ports(value, pod)
    if not ("hostNetwork" in pod.spec and pod.is_true("hostNetwork")):
        return
    for port in (port for container in list_mappings(value) for port in list_mappings(container.get("ports"))):
        container_port, host_port = port.get("containerPort"), port.get("hostPort")
        if type(host_port) is int and host_port not in (0, container_port):
            ports = f"`hostPort` is `{host_port}`, but `containerPort` is `{container_port}`"
            message = Sentence("{}; set both to the same number, because `hostNetwork` is true", ports)
            pod.report("host-port-mismatch", message, At(port, "hostPort"))


def validate_init_containers(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate the init containers of the pod; with `restartPolicy: Always` they are sidecars."""
    names = {as_text(container.get("name")) for container in list_mappings(pod.spec.get("containers"))} - {""}
    for container in list_mappings(value):
        _validate_name_and_image(container, (), names, (owner, key), pod)
        is_sidecar = "restartPolicy" in container and container["restartPolicy"] == "Always"
        validate_fields(container, _SIDECAR if is_sidecar else _INIT_CONTAINER, pod)
        if "ports" in container:
            _validate_host_ports([container], pod)


def validate_ephemeral_containers(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Report ephemeral containers, which can only be added to a running pod."""
    if isinstance(value, list) and value:
        message = "`ephemeralContainers` can only be added to a running pod; delete them"
        pod.report("ephemeral-container-in-template", message, (owner, key))


def _describe_others(siblings: Iterable[Fields]) -> str:
    """The names of containers that a layer may have meant to change; without an image, it adds one of its own."""
    names = [as_text(each.get("name")) for each in siblings if as_text(each.get("image"))]
    shown = list_alternatives(f"`{name}`" for name in names[:_MOST_NAMED])
    return f", or write {shown} for its name" if shown else ""


def _validate_name_and_image(
    container: Fields, siblings: Iterable[Fields], names: set[str], entry: Entry, pod: Validation
) -> None:
    name = container.get("name")
    if name is None or name == "":
        pod.report_missing("a container", container, "name", entry)
    elif type(name) is str:
        if not is_dns_label(name):
            message = Sentence("`{}` is not a valid container name; {}", name, DNS_LABEL)
            pod.report("invalid-container-name", message, At(container, "name"))
        if name in names:
            message = Sentence("two containers of the pod are named `{}`; rename one of them", name)
            pod.report("duplicate-container-name", message, At(container, "name"))
        names.add(name)
    image = container.get("image")
    if image is None or image == "":
        if not pod.needs_images:
            return
        other = _describe_others(siblings) if name and "command" not in container else ""
        pod.report_missing(f"container `{name}`" if name else "a container", container, "image", entry, other)
    elif type(image) is str and image.strip() != image and image.strip(_SPACE) != image:
        place = At(container, "image")
        fix = ((FixStep("set", place, image.strip(_SPACE)),), True)
        message = Sentence("the image `{}` starts or ends with whitespace; delete it", image)
        pod.report("image-name-whitespace", message, place, fix)


def _validate_resize_policy(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    names: set[str] = set()
    for policy in list_mappings(value):
        _validate_resize_fields(key, policy, owner, pod)
        name, restart_policy = as_text(policy.get("resourceName")), as_text(policy.get("restartPolicy"))
        if name and name in names:
            message = Sentence("two resize policies are for `{}`; delete one of them", name)
            pod.report(_POLICY_RULE, message, At(policy, "resourceName"))
        names.add(name)
        if restart_policy == "RestartContainer" and pod.restart_policy == "Never":
            message = Sentence("`RestartContainer` cannot be set if `restartPolicy` of the pod is `Never`")
            pod.report(_POLICY_RULE, Sentence("{}; delete the resize policy", message), At(policy, "restartPolicy"))


def _validate_init_resize_policy(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    _validate_resize_policy(key, value, owner, pod)
    for policy in list_mappings(value):
        if policy.get("restartPolicy") == "RestartContainer" and pod.restart_policy != "Never":
            message = "`RestartContainer` cannot be set for an init container that is not a sidecar"
            pod.report(_POLICY_RULE, Sentence("{}; delete the resize policy", message), At(policy, "restartPolicy"))


def _validate_restart_policy(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    if pod.release >= _RESTARTS_SINCE:
        _validate_any_restart_policy(key, value, owner, pod)
    elif pod.release < _RESTARTS_DROPPED and is_set(value):
        message = "only init containers can have `restartPolicy` before Kubernetes 1.35; delete it"
        pod.report(_POLICY_RULE, message, At(owner, key))


def _validate_init_restart_policy(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    if pod.release >= _RESTARTS_SINCE:
        _validate_any_restart_policy(key, value, owner, pod)
    elif pod.release < _RESTARTS_DROPPED:
        _validate_sidecar_restart_policy(key, value, owner, pod)


def _validate_restart_rules(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    if not isinstance(value, list) or not value or pod.release < _RESTARTS_SINCE:
        return
    pod.require_fields("a container with `restartPolicyRules`", owner, ("restartPolicy",), (owner, key))
    if len(value) > 20:
        pod.report(_POLICY_RULE, Sentence("there are `{}` restart rules; the maximum is 20", len(value)), (owner, key))
    for rule in list_mappings(value):
        _check_restart_rule(rule, (owner, key), pod)


def _validate_exit_codes(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    if isinstance(value, list) and len(value) > 255:
        pod.report(_POLICY_RULE, Sentence("there are `{}` exit codes; the maximum is 255", len(value)), (owner, key))


def validate_pod_restart_policy(pod: Validation, supported: tuple[str, ...] = ()) -> None:
    """Validate the restart policy that the operator sets for the pod; an operator may support others than pods do."""
    found = pod.restart_policy
    if type(found) is str and found and found not in _RESTART_POLICIES:
        place = pod.policy_place or At(pod.spec, "restartPolicy")
        pod.report_unsupported("restartPolicy", place, supported or _RESTART_POLICIES, _RESTART_POLICIES)


_HANDLERS: Table = {
    "exec": mapping({}, "command"),
    "httpGet": mapping(
        {
            "port": validate_port_reference,
            "scheme": one_of("", "HTTP", "HTTPS"),
            "httpHeaders": each(mapping({"name": _validate_header_name}, "name", what="`httpHeaders`")),
        },
        "port",
    ),
    "tcpSocket": mapping({"port": validate_port_reference}, "port"),
}
_PROBE_HANDLERS: Table = {**_HANDLERS, "grpc": mapping({"port": validate_port_number}, "port")}
_validate_hook = _handler({**_HANDLERS, "sleep": mapping({}, _check_sleep)}, {})
_validate_restarting_probe = _handler(
    _PROBE_HANDLERS,
    {**_PROBE, "successThreshold": number(1, 1, allow_zero=True), "terminationGracePeriodSeconds": number(1)},
)
_PROBES: Table = {
    "lifecycle": mapping({"postStart": _validate_hook, "preStop": _validate_hook}),
    "livenessProbe": _validate_restarting_probe,
    "readinessProbe": _handler(
        _PROBE_HANDLERS,
        {**_PROBE, "successThreshold": number(0), "terminationGracePeriodSeconds": _forbid_grace_period},
    ),
    "startupProbe": _validate_restarting_probe,
}
_check_restart_rule = fields(
    "a restart rule",
    {
        "action": one_of("", "Restart", "RestartAllContainers"),
        "exitCodes": mapping({"operator": one_of("", "In", "NotIn"), "values": _validate_exit_codes}, "operator"),
    },
    "action",
    require_set("a restart rule", "exitCodes"),
)
_SHARED: Table = {
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
_CONTAINER: Table = {**_SHARED, **_PROBES}
_SIDECAR: Table = {**_CONTAINER, "restartPolicy": _validate_init_restart_policy}
_INIT_CONTAINER: Table = {
    **_SHARED,
    # An init container can have probes and hooks only if it is a sidecar.
    **dict.fromkeys(_PROBES, _forbid_probe),
    "lifecycle": _forbid_lifecycle,
    "resizePolicy": _validate_init_resize_policy,
    "restartPolicy": _validate_init_restart_policy,
}
