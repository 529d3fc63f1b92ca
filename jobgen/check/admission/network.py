"""Validate the network of a pod: container ports, host ports, DNS and host names."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    is_empty,
    iter_mappings,
    iter_strings,
    report_missing,
    report_unsupported,
    validate_each,
    validate_mapping,
    validate_number,
    validate_string,
)
from jobgen.check.admission.names import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    PORT_NAME,
    is_dns_label,
    is_dns_subdomain,
    is_ip_address,
    is_port_name,
    is_search_domain,
)
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node, value_of

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_DNS_RULE = "invalid-dns-config"
_HOST_RULE = "invalid-host-name"
_MAX_NAMESERVERS = 3
_MAX_SEARCHES = 32
_MAX_SEARCH_LENGTH = 2048
_IP_ADDRESS = "write it like `10.9.8.7` or `2001:db8::1`"

validate_port_number = validate_number(1, 65535, rule="invalid-port")
_validate_port_name = validate_string("invalid-port-name", "port name", is_port_name, PORT_NAME)


def validate_port_reference(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate the port of a probe or a hook: a number, or the name of a port."""
    if type(value_of(value)) is int:
        validate_port_number(key, value, owner, pod)
    else:
        _validate_port_name(key, value, owner, pod)


def validate_ports(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate the ports of one container."""
    if not isinstance(value, list):
        return
    names: set[str] = set()
    for port in value:
        if isinstance(port, dict):
            _validate_port(port, key, names, pod)


def _validate_port(port: Mapping[str, Node], parent: str, names: set[str], pod: Validation) -> None:
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


def _validate_host_port(
    port: Mapping[str, Node], used: set[tuple[str, str, int]], pod: Validation, *, on_host: bool
) -> None:
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


_validate_relaxed_domain, _validate_strict_domain = (
    validate_string(_DNS_RULE, "search domain", is_valid, "use a name like `example.com`", allow_empty=False)
    for is_valid in (is_search_domain, is_dns_subdomain)
)
_RELAXED_SINCE = (1, 33)


def _validate_search_domain(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    validate = _validate_relaxed_domain if pod.release >= _RELAXED_SINCE else _validate_strict_domain
    validate(key, value, owner, pod)


_validate_nameserver = validate_string(_DNS_RULE, "IP address", is_ip_address, _IP_ADDRESS, allow_empty=False)
_validate_host_domain = validate_string(_HOST_RULE, "host name", is_dns_subdomain, DNS_SUBDOMAIN, allow_empty=False)
validate_hostname = validate_string(_HOST_RULE, "host name", is_dns_label, DNS_LABEL)
validate_host_aliases = validate_each(
    validate_mapping(
        {
            "ip": validate_string(_HOST_RULE, "IP address", is_ip_address, _IP_ADDRESS),
            "hostnames": validate_each(_validate_host_domain),
        },
        "ip",
    )
)


def _validate_nameservers(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    if isinstance(value, list):
        if len(value) > _MAX_NAMESERVERS:
            message = f"there are `{len(value)}` nameservers; the maximum is {_MAX_NAMESERVERS}"
            pod.report(_DNS_RULE, message, key)
        for item in value:
            _validate_nameserver(key, item, owner, pod)


def _validate_searches(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    if not isinstance(value, list):
        return
    length = len(" ".join(found for found, _ in iter_strings(value)))
    if len(value) > _MAX_SEARCHES or length > _MAX_SEARCH_LENGTH:
        maximum = f"the maximum is {_MAX_SEARCHES} with {_MAX_SEARCH_LENGTH} characters"
        pod.report(_DNS_RULE, f"there are `{len(value)}` searches with `{length}` characters; {maximum}", key)
    for item in value:
        _validate_search_domain(key, item, owner, pod)


validate_dns_config = validate_mapping(
    {
        "nameservers": _validate_nameservers,
        "searches": _validate_searches,
        "options": validate_each(validate_mapping({}, "name")),
    }
)


def validate_dns_policy(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate that the policy `None` has nameservers in `dnsConfig`."""
    if value_of(value) != "None":
        return
    config = pod.spec.get("dnsConfig")
    if not isinstance(config, dict):
        report_missing("`dnsPolicy: None`", {}, "dnsConfig", value, pod)
    elif is_empty(config.get("nameservers")):
        report_missing("`dnsPolicy: None`", config, "nameservers", value, pod)


def validate_hostname_override(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate the host name that replaces the one of Kubernetes."""
    found = value_of(value)
    if type(found) is not str:
        return
    _validate_host_domain(key, value, owner, pod)
    if len(found) > 64:
        pod.report(_HOST_RULE, f"`{key}` must have at most 64 characters, got `{len(found)}`", value)
    for flag in ("setHostnameAsFQDN", "hostNetwork"):
        if pod.is_true(flag):
            pod.report(_HOST_RULE, f"`{key}` cannot be set if `{flag}` is true; delete one of them", value)
