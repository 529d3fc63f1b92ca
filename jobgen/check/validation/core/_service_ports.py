"""Validate the ports of a Service."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, is_set, iter_items, report_missing, report_unsupported
from jobgen.check.admission.names import DNS_LABEL, LABEL_KEY, is_dns_label, is_label_key
from jobgen.check.admission.network import validate_port_number, validate_port_reference
from jobgen.check.validation.core._cluster_ips import ServiceFields
from jobgen.k8s.nodes import as_integer, as_list, as_text
from jobgen.model.data import Node, value_of

PROTOCOLS = ("TCP", "UDP", "SCTP")
_DUPLICATE = "duplicate-item"
# The default of the API server's flag `--service-node-port-range`.
_NODE_PORTS = range(30000, 32768)


def validate_service_ports(service: ServiceFields, run: Validation) -> None:
    """Validate each port, and that no two of them have the same name or number."""
    ports = service.spec.get("ports")
    names: set[str] = set()
    numbers: set[tuple[str, int]] = set()
    node_ports: dict[int, tuple[set[str], int]] = {}
    for port, node in iter_items("ports", ports):
        validate_port_name(port, node, names, run, required=len(as_list(ports)) > 1)
        validate_port_fields(port, node, run)
        target = port.get("targetPort")
        if value_of(target) not in (None, 0, ""):
            validate_port_reference("targetPort", target, port, run)
        _validate_unique_number(port, numbers, run)
        if as_integer(port.get("nodePort")):
            _validate_node_port(port, service.type, node_ports, run)


def validate_port_name(
    port: Mapping[str, Node], node: Node, names: set[str], run: Validation, *, required: bool
) -> None:
    """Validate the name of a port, which several ports require."""
    name = as_text(port.get("name"))
    if not name:
        if required:
            report_missing("a port among several", port, "name", node, run)
    elif not is_dns_label(name):
        run.report("invalid-port-name", f"`{name}` is not a valid name of a port; {DNS_LABEL}", port["name"])
    elif name in names:
        run.report(_DUPLICATE, f"two ports are named `{name}`; rename one of them", port["name"])
    names.add(name)


def validate_port_fields(port: Mapping[str, Node], node: Node, run: Validation) -> None:
    """Validate the number and the protocols of a port."""
    if value_of(port.get("port")) in (None, 0):
        report_missing("a port", port, "port", node, run)
    else:
        validate_port_number("port", port["port"], port, run)
    if as_text(port.get("protocol")) not in ("", *PROTOCOLS):
        report_unsupported("protocol", port["protocol"], PROTOCOLS, run)
    if is_set(port.get("appProtocol")) and not is_label_key(as_text(port["appProtocol"])):
        protocol = as_text(port["appProtocol"])
        run.report("invalid-value", f"`{protocol}` is not a valid protocol; {LABEL_KEY}", port["appProtocol"])


def _validate_unique_number(port: Mapping[str, Node], numbers: set[tuple[str, int]], run: Validation) -> None:
    number = as_integer(port.get("port"))
    if number is None:
        return
    protocol = as_text(port.get("protocol")) or "TCP"
    if (protocol, number) in numbers:
        run.report(_DUPLICATE, f"two ports have the number `{number}` for `{protocol}`; change one", port["port"])
    numbers.add((protocol, number))


def _validate_node_port(
    port: Mapping[str, Node], service_type: str, used: dict[int, tuple[set[str], int]], run: Validation
) -> None:
    """Validate the port of the nodes; two ports share it if they have the same number and different protocols."""
    node_port, number = as_integer(port["nodePort"]) or 0, as_integer(port.get("port")) or 0
    protocol = as_text(port.get("protocol")) or "TCP"
    if service_type == "ClusterIP":
        message = "`nodePort` requires the type `NodePort` or `LoadBalancer`; set it, or delete `nodePort`"
        run.report("invalid-value", message, find_key(port, "nodePort", port))
        return
    if service_type != "ExternalName":
        validate_node_port("nodePort", port["nodePort"], run)
    protocols, first = used.setdefault(node_port, (set(), number))
    if protocol in protocols or (protocols and first != number and service_type != "ExternalName"):
        run.report(_DUPLICATE, f"two ports have the `nodePort` `{node_port}`; change one of them", port["nodePort"])
    protocols.add(protocol)


def validate_node_port(key: str, value: Node, run: Validation) -> None:
    """Validate that a port is in the range that nodes reserve for Services by default."""
    port = as_integer(value)
    if port is not None and port not in _NODE_PORTS:
        bounds = f"{_NODE_PORTS[0]} and {_NODE_PORTS[-1]}"
        run.report("invalid-port", f"`{key}` must be between {bounds}, the default range of nodes, got `{port}`", value)
