"""Validate Services, and the Endpoints and EndpointSlices behind them."""

from __future__ import annotations

from collections.abc import Callable

from jobgen.check.admission.containers import validate_port_number, validate_port_reference
from jobgen.check.admission.fields import (
    Entry,
    Fields,
    Kind,
    Table,
    Validation,
    Validator,
    at_most,
    choice,
    dns_label,
    dns_subdomain,
    fields,
    find_entry,
    find_value,
    is_set,
    items,
    iter_items,
    iter_texts,
    mapping,
    number,
    one_of,
    qualified_name,
    since,
    texts,
    validate_fields,
)
from jobgen.check.admission.metadata import validate_labels
from jobgen.check.admission.names import (
    DNS_SUBDOMAIN,
    LABEL_1035_NAME,
    LABEL_KEY,
    LABEL_NAME,
    LABEL_VALUE,
    is_dns_label,
    is_dns_subdomain,
    is_label_key,
    is_label_value,
)
from jobgen.check.validation.addresses import (
    describe_address_fault,
    describe_cidr_fault,
    describe_special_address,
    is_canonical_address,
    parse_address,
)
from jobgen.k8s.kinds import Release
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Place
from jobgen.model.sentence import Sentence

_TYPES = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")
_PROTOCOLS = ("TCP", "UDP", "SCTP")
# The default of the API server's flag `--service-node-port-range`.
_NODE_PORTS = range(30000, 32768)
_FAMILIES = {4: "IPv4", 6: "IPv6"}
_HEADLESS = "None"
_SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"
_TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"
_ADDRESS_RULE = "invalid-host-name"
_affinity_config = mapping({"clientIP": mapping({"timeoutSeconds": number(1, 86400)})})
_app_protocol = qualified_name("invalid-value", "protocol", allow_empty=False)
_port_name = dns_label("invalid-port-name", "name of a port")
_PORT: Table = {"appProtocol": _app_protocol, "name": _port_name, "protocol": one_of("", *_PROTOCOLS)}
_node_name = dns_subdomain("invalid-object-name", "node name", allow_empty=False)
_ADDRESS: Table = {"hostname": dns_label(_ADDRESS_RULE, "host name"), "nodeName": _node_name}
_check_slice_port = fields("a port", {**_PORT, "protocol": one_of(*_PROTOCOLS)})


class _Service(NamedTuple):
    """The fields of a Service that decide which of the others are valid."""

    spec: Fields
    type: str
    cluster_ips: list[tuple[str, Place | Entry]]
    """`clusterIPs`, or `clusterIP` if they are not set."""

    @property
    def is_headless(self) -> bool:
        return [found for found, _ in self.cluster_ips] == [_HEADLESS]

    def forbid(self, fields: list[str], run: Validation) -> None:
        """Report fields that Services of this type cannot have."""
        for field in fields:
            message = Sentence("`{}` cannot be set for a Service of type `{}`; delete it", field, self.type)
            run.invalid(message, (self.spec, field))


def _check_service(obj: Fields, entry: Entry, run: Validation) -> None:
    """Check a Service, with the defaults that the API server sets first."""
    spec = run.spec
    cluster_ips: list[tuple[str, Place | Entry]] = list(iter_texts(spec.get("clusterIPs")))
    if not cluster_ips and as_text(spec.get("clusterIP")):
        cluster_ips = [(as_text(spec["clusterIP"]), At(spec, "clusterIP"))]
    service = _Service(spec, as_text(spec.get("type")) or "ClusterIP", cluster_ips)
    validate_fields(spec, _SERVICE, run)
    _validate_ports(service, run)
    if as_text(spec.get("sessionAffinity")) == "ClientIP":
        # The API server drops the timeout for other affinities.
        _affinity_config("sessionAffinityConfig", spec.get("sessionAffinityConfig"), spec, run)
    if service.type == "ExternalName":
        _validate_external_name(service, run)
    else:
        _validate_cluster_ips(service, run)
    if service.type not in _TYPES:
        # Which of the other fields are valid depends on the type.
        run.report_unsupported("type", At(spec, "type"), _TYPES)
        return
    # `none` is reported as an address, and means a headless Service.
    has_address = not service.is_headless and as_text(spec.get("clusterIP")).lower() != "none"
    if not as_list(spec.get("ports")) and has_address and service.type != "ExternalName":
        run.report_missing("a Service with a cluster IP", spec, "ports", find_entry(obj, "spec", entry))
    _validate_load_balancer(service, run)
    _validate_external_traffic(service, run)
    _validate_annotations(service, run)


def _describe_endpoint_fault(found: str, release: Release) -> str:
    address = parse_address(found)
    return describe_address_fault(found, release) or (describe_special_address(address) if address else "")


def _faults(describe_fault: Callable[[str, Release], str]) -> Validator:
    def validate(key: str, value: Plain, owner: Fields, run: Validation) -> None:
        for found, node in iter_texts(value):
            if fault := describe_fault(found, run.release):
                run.report(_ADDRESS_RULE, fault, node)

    return validate


def _validate_traffic_distribution(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    nearer = ("PreferSameZone", "PreferSameNode") if run.release >= (1, 34) else ()
    one_of("PreferClose", *nearer)(key, value, owner, run)


def _validate_external_name(service: _Service, run: Validation) -> None:
    spec = service.spec
    cluster_ips = "clusterIPs" if as_list(spec.get("clusterIPs")) else "clusterIP"
    given = {
        cluster_ips: service.cluster_ips,
        "ipFamilies": as_list(spec.get("ipFamilies")),
        "ipFamilyPolicy": is_set(spec.get("ipFamilyPolicy")),
    }
    service.forbid([field for field, is_given in given.items() if is_given], run)
    name = as_text(spec.get("externalName")).removesuffix(".")
    if not name:
        run.report_missing("a Service of type `ExternalName`", spec, "externalName", (spec, None))
    elif not is_dns_subdomain(name):
        run.report(
            _ADDRESS_RULE,
            Sentence("`{}` is not a valid external name; {}", name, DNS_SUBDOMAIN),
            At(spec, "externalName"),
        )


def _validate_load_balancer(service: _Service, run: Validation) -> None:
    spec = service.spec
    if service.type != "LoadBalancer":
        given = [name for name in ("allocateLoadBalancerNodePorts", "loadBalancerClass") if is_set(spec.get(name))]
        given += ["loadBalancerSourceRanges"] if as_list(spec.get("loadBalancerSourceRanges")) else []
        service.forbid(given, run)
    elif is_set(spec.get("loadBalancerClass")) and not is_label_key(as_text(spec["loadBalancerClass"])):
        name = as_text(spec["loadBalancerClass"])
        run.invalid(Sentence("`{}` is not a valid class; {}", name, LABEL_KEY), At(spec, "loadBalancerClass"))


def _validate_external_traffic(service: _Service, run: Validation) -> None:
    spec, policy = service.spec, as_text(service.spec.get("externalTrafficPolicy"))
    has_external_ips = service.type == "ClusterIP" and as_list(spec.get("externalIPs"))
    if service.type in ("NodePort", "LoadBalancer") or has_external_ips:
        one_of("", "Cluster", "Local")("externalTrafficPolicy", spec.get("externalTrafficPolicy"), spec, run)
    elif policy:
        message = "`externalTrafficPolicy` requires the type `NodePort` or `LoadBalancer`, or `externalIPs`; delete it"
        run.invalid(message, At(spec, "externalTrafficPolicy"))
    if not as_integer(spec.get("healthCheckNodePort")):
        return
    if service.type == "LoadBalancer" and policy == "Local":
        _validate_node_port("healthCheckNodePort", spec, run)
    else:
        message = "`healthCheckNodePort` requires the type `LoadBalancer` and `externalTrafficPolicy: Local`; delete it"
        run.invalid(message, At(spec, "healthCheckNodePort"))


def _validate_annotations(service: _Service, run: Validation) -> None:
    annotations = as_mapping(run.metadata.get("annotations"))
    modes = [annotations[name] for name in (_TOPOLOGY_MODE, _TOPOLOGY_HINTS) if name in annotations]
    if len(modes) == 2 and modes[0] != modes[1]:
        message = Sentence(
            "`{}` and `{}` differ; delete the latter, which is deprecated", _TOPOLOGY_MODE, _TOPOLOGY_HINTS
        )
        run.report("invalid-annotation", message, At(annotations, _TOPOLOGY_MODE))
    if _SOURCE_RANGES not in annotations or as_list(service.spec.get("loadBalancerSourceRanges")):
        return
    node = annotations[_SOURCE_RANGES]
    if service.type != "LoadBalancer":
        message = Sentence("`{}` requires the type `LoadBalancer`; delete it", _SOURCE_RANGES)
        run.report("invalid-annotation", message, (annotations, _SOURCE_RANGES))
    written = as_text(node).strip()
    for part in written.split(",") if written else ():
        if fault := describe_cidr_fault(part.strip(), run.release):
            run.report("invalid-annotation", fault, At(annotations, _SOURCE_RANGES))


def _validate_cluster_ips(service: _Service, run: Validation) -> None:
    spec, first = service.spec, as_text(service.spec.get("clusterIP"))
    listed = as_list(spec.get("clusterIPs"))
    if service.is_headless and service.type in ("NodePort", "LoadBalancer"):
        message = Sentence("`None` is not a valid cluster IP for a Service of type `{}`; delete it", service.type)
        run.invalid(message, service.cluster_ips[0][1])
    validate_fields(spec, _FAMILY_FIELDS, run)
    if listed and not first:
        message = Sentence("`clusterIPs` requires `clusterIP` with the first of its addresses; set it")
        run.invalid(message, (spec, "clusterIPs"))
        return
    if listed and as_text(listed[0]) != first:
        message = Sentence(
            "`clusterIPs` begins with `{}`, but `clusterIP` is `{}`; make them equal", as_text(listed[0]), first
        )
        run.invalid(message, At(spec, "clusterIPs"))
    if _validate_addresses(service, run):
        _validate_address_families(service, run)


def _validate_addresses(service: _Service, run: Validation) -> bool:
    """Validate each cluster IP and return whether all of them are addresses."""
    before, size = len(run.problems), len(service.cluster_ips)
    for index, (found, node) in enumerate(service.cluster_ips):
        if found == _HEADLESS and index == 0:
            if size > 1:
                run.invalid("`None` cannot be combined with other cluster IPs; delete them", node)
        elif fault := describe_address_fault(found, run.release):
            run.report(_ADDRESS_RULE, fault, node)
    if size > 2:
        message = Sentence("`clusterIPs` has `{}` addresses; it can have at most 2", size)
        run.report("out-of-range", message, (service.spec, "clusterIPs"))
    return len(run.problems) == before


def _validate_address_families(service: _Service, run: Validation) -> None:
    """Validate the families of the addresses, and that two of them come with a policy for two."""
    spec, policy = service.spec, as_text(service.spec.get("ipFamilyPolicy"))
    addresses = [] if service.is_headless else [(parse_address(one), node) for one, node in service.cluster_ips]
    families = [(_FAMILIES[address.version], node) for address, node in addresses if address is not None]
    if len(families) == 2 and families[0][0] == families[1][0]:
        message = Sentence(
            "`clusterIPs` has two addresses of the family `{}`; write one of each family", families[0][0]
        )
        run.invalid(message, families[1][1])
    declared = [family for family, _ in iter_texts(spec.get("ipFamilies"))]
    for (family, node), expected in zip(families, declared, strict=False):
        if expected in _FAMILIES.values() and family != expected:
            message = Sentence("the cluster IP is of the family `{}`, but `ipFamilies` has `{}`", family, expected)
            run.invalid(Sentence("{}; change one of them", message), node)
    pairs = [name for name in ("clusterIPs", "ipFamilies") if len(as_list(spec.get(name))) == 2]
    without_selector = service.is_headless and not spec.get("selector")
    if pairs and (policy == "SingleStack" or (not policy and not without_selector)):
        message = Sentence(
            "two items in `{}` require `ipFamilyPolicy: PreferDualStack` or `RequireDualStack`; set it", pairs[0]
        )
        run.invalid(message, (spec, "ipFamilyPolicy" if policy else pairs[0]))


def _check_port_number(port: Fields, entry: Entry, run: Validation) -> None:
    if port.get("port") in (None, 0):
        run.report_missing("a port", port, "port", entry)
    else:
        validate_port_number("port", port["port"], port, run)


def _validate_ports(service: _Service, run: Validation) -> None:
    """Validate each port, and that no two of them have the same name or number."""
    ports = service.spec.get("ports")
    names: set[str] = set()
    numbers: set[tuple[str, int]] = set()
    node_ports: dict[int, tuple[set[str], int]] = {}
    for port, place in iter_items(ports):
        _check_port(port, place, run)
        name, port_number = as_text(port.get("name")), as_integer(port.get("port"))
        protocol = as_text(port.get("protocol")) or "TCP"
        if not name and len(as_list(ports)) > 1:
            run.report_missing("a port among several", port, "name", place)
        elif name and is_dns_label(name) and name in names:
            run.report(
                "duplicate-item", Sentence("two ports are named `{}`; rename one of them", name), At(port, "name")
            )
        if port.get("targetPort") not in (None, 0, ""):
            validate_port_reference("targetPort", port["targetPort"], port, run)
        if port_number is not None and (protocol, port_number) in numbers:
            message = Sentence("two ports have the number `{}` for `{}`; change one", port_number, protocol)
            run.report("duplicate-item", message, At(port, "port"))
        names.add(name)
        numbers.add((protocol, port_number or 0))
        if as_integer(port.get("nodePort")):
            _validate_node_port_of(port, protocol, service.type, node_ports, run)


def _validate_node_port_of(
    port: Fields, protocol: str, service_type: str, used: dict[int, tuple[set[str], int]], run: Validation
) -> None:
    """Validate the port of the nodes; two ports share it if they have the same number and different protocols."""
    node_port, port_number = as_integer(port["nodePort"]) or 0, as_integer(port.get("port")) or 0
    if service_type == "ClusterIP":
        message = Sentence("`nodePort` requires the type `NodePort` or `LoadBalancer`; set it, or delete `nodePort`")
        run.invalid(message, (port, "nodePort"))
        return
    if service_type != "ExternalName":
        _validate_node_port("nodePort", port, run)
    protocols, first = used.setdefault(node_port, (set(), port_number))
    if protocol in protocols or (protocols and first != port_number and service_type != "ExternalName"):
        message = Sentence("two ports have the `nodePort` `{}`; change one of them", node_port)
        run.report("duplicate-item", message, At(port, "nodePort"))
    protocols.add(protocol)


def _validate_node_port(key: str, owner: Fields, run: Validation) -> None:
    port = as_integer(owner[key])
    if port is not None and port not in _NODE_PORTS:
        bounds = f"{_NODE_PORTS[0]} and {_NODE_PORTS[-1]}"
        run.report(
            "invalid-port",
            Sentence("`{}` must be between {}, the default range of nodes, got `{}`", key, bounds, port),
            At(owner, key),
        )


def _check_address(address: Fields, entry: Entry, run: Validation) -> None:
    if fault := _describe_endpoint_fault(as_text(address.get("ip")), run.release):
        run.report(_ADDRESS_RULE, fault, find_value(address, "ip", entry))


def _check_subset(subset: Fields, entry: Entry, run: Validation) -> None:
    if not any(as_list(subset.get(name)) for name in ("addresses", "notReadyAddresses")):
        run.report("missing-field", "a subset requires `addresses` or `notReadyAddresses`; set one of them", entry)
    for port, node in iter_items(subset.get("ports")) if len(as_list(subset.get("ports"))) > 1 else ():
        if not as_text(port.get("name")):
            run.report_missing("a port among several", port, "name", node)


def _check_slice(obj: Fields, entry: Entry, run: Validation) -> None:
    """Check the addresses of all endpoints, which are of one type."""
    address_type = as_text(obj.get("addressType"))
    for endpoint, node in iter_items(obj.get("endpoints")):
        if len(as_list(obj.get("endpoints"))) > _MAX_ENDPOINTS:
            return
        if not as_list(endpoint.get("addresses")):
            run.report_missing("an endpoint", endpoint, "addresses", node)
        for found, item in iter_texts(endpoint.get("addresses")):
            if fault := _describe_slice_fault(found, address_type, run.release):
                run.report(_ADDRESS_RULE, fault, item)


def _describe_slice_fault(found: str, address_type: str, release: Release) -> str:
    """Return what is wrong with an address, or an empty string; addresses of other types are not validated."""
    if address_type == "FQDN":
        name = found.removesuffix(".")
        is_valid = "." in name and is_dns_subdomain(name) and all(map(is_dns_label, name.split(".")))
        return "" if is_valid else f"`{found}` is not a domain name; write at least two labels, such as `example.com`"
    if address_type not in _FAMILIES.values():
        return ""
    fault, address = describe_address_fault(found, release), parse_address(found)
    if fault or address is None:
        return fault
    if _FAMILIES[address.version] != address_type:
        return f"`{found}` is not an address of `{address_type}`; write one, or change `addressType`"
    if address_type == "IPv6" and release >= (1, 33) and not is_canonical_address(found):
        return f"`{found}` is not in canonical form; write `{address}`"
    return describe_special_address(address)


def _validate_slice_ports(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    """Validate names and protocols; numbers are not validated, and an empty name is also unique."""
    names: set[str] = set()
    for port, place in iter_items(value):
        _check_slice_port(port, place, run)
        name = as_text(port.get("name"))
        if name in names and (not name or is_dns_label(name)):
            run.report(
                "duplicate-item",
                Sentence("two ports are named `{}`; rename one of them", name),
                find_value(port, "name", place),
            )
        names.add(name)


def _hints(is_valid: Callable[[str], bool], hint: str) -> Validator:
    """Return a validator for the names of the zones or nodes that should use an endpoint."""

    def validate(key: str, value: Plain, owner: Fields, run: Validation) -> None:
        seen: set[str] = set()
        for item, node in iter_items(value):
            name = as_text(item.get("name"))
            if name in seen:
                run.report("duplicate-item", Sentence("`{}` contains `{}` twice; delete one of them", key, name), node)
            elif not is_valid(name):
                run.invalid(
                    Sentence("`{}` is not a valid name in `{}`; {}", name, key, hint), find_value(item, "name", node)
                )
            seen.add(name)

    return at_most(8, validate)


_SERVICE: Table = {
    "externalIPs": _faults(_describe_endpoint_fault),
    "internalTrafficPolicy": one_of("Cluster", "Local"),
    "loadBalancerSourceRanges": _faults(lambda found, release: describe_cidr_fault(found.strip(), release)),
    "selector": validate_labels,
    "sessionAffinity": one_of("", "None", "ClientIP"),
    "trafficDistribution": since((1, 31), _validate_traffic_distribution),
}
_FAMILY_FIELDS: Table = {
    "ipFamilies": texts(*_FAMILIES.values(), twice="`ipFamilies` contains `{}` twice; delete one of them"),
    "ipFamilyPolicy": one_of("SingleStack", "PreferDualStack", "RequireDualStack"),
}
_check_port = fields("a port", _PORT, _check_port_number)
_addresses = items("an address", _ADDRESS, _check_address)
_SUBSET: Table = {
    "addresses": _addresses,
    "notReadyAddresses": _addresses,
    "ports": items("a port", _PORT, _check_port_number),
}

_MAX_ENDPOINTS = 1000
_HINTS: Table = {
    "forNodes": since((1, 34), _hints(is_dns_subdomain, DNS_SUBDOMAIN)),
    "forZones": _hints(is_label_value, LABEL_VALUE),
}
_ENDPOINT: Table = {
    "addresses": at_most(100),
    "hints": mapping(_HINTS),
    "hostname": dns_label("invalid-object-name", "host name", allow_empty=False),
    "nodeName": _node_name,
}
_SLICE: Table = {
    "endpoints": at_most(_MAX_ENDPOINTS, items("an endpoint", _ENDPOINT)),
    "ports": at_most(20000, _validate_slice_ports),
}

KINDS = {
    "EndpointSlice": Kind(
        fields(
            "an EndpointSlice", _SLICE, choice("an EndpointSlice", "addressType", "IPv4", "IPv6", "FQDN"), _check_slice
        )
    ),
    "Endpoints": Kind(fields("Endpoints", {"subsets": items("a subset", _SUBSET, _check_subset)})),
    "Service": Kind(_check_service, LABEL_NAME, older_name_format=((1, 36), LABEL_1035_NAME)),
}
