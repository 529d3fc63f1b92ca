"""Validate the kinds of `networking.k8s.io`: Ingresses, their classes, and network policies."""

from __future__ import annotations

from jobgen.check.admission.fields import (
    Entry,
    Fields,
    Kind,
    Validation,
    Validator,
    api_group,
    at_most,
    dns_subdomain,
    find_entry,
    find_value,
    is_empty,
    is_set,
    items,
    iter_texts,
    mapping,
    one_of,
    path_segment,
    spec,
    texts,
    validate_port,
)
from jobgen.check.admission.names import (
    DNS_LABEL,
    DNS_LABEL_1035,
    DNS_SUBDOMAIN,
    PORT_NAME,
    is_dns_label,
    is_dns_label_1035,
    is_dns_subdomain,
    is_domain_prefixed_path,
    is_port_name,
)
from jobgen.check.admission.scheduling import validate_label_selector
from jobgen.check.validation.addresses import describe_cidr_fault, is_sloppy_address, parse_cidr
from jobgen.k8s.nodes import as_integer, as_mapping, as_text
from jobgen.model.data import Plain
from jobgen.model.place import At
from jobgen.model.sentence import Sentence

_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_SCOPES = ("Cluster", "Namespace")
_segment = path_segment("invalid-object-name", "name")
_REFERENCE = {"apiGroup": api_group, "kind": _segment, "name": _segment}
_resource = mapping(_REFERENCE, "kind", "name")
_HOST = f"{DNS_SUBDOMAIN}, or such a name after `*.`"


def _check_ingress(ingress: Fields, entry: Entry, run: Validation) -> None:
    if not ingress.get("rules") and not isinstance(ingress.get("defaultBackend"), dict):
        run.report("missing-field", "an Ingress requires `rules` or `defaultBackend`; set one of them", entry)
    if isinstance(ingress.get("defaultBackend"), dict):
        _check_backend("defaultBackend", ingress, entry, run)
    annotations, name = as_mapping(run.metadata.get("annotations")), as_text(ingress.get("ingressClassName"))
    other = annotations.get(_CLASS_ANNOTATION)
    if is_set(ingress.get("ingressClassName")) and is_set(other) and as_text(other) != name:
        message = Sentence(
            "the annotation `{}` differs from `ingressClassName`, which is `{}`; delete it", _CLASS_ANNOTATION, name
        )
        run.report("invalid-annotation", message, At(annotations, _CLASS_ANNOTATION))


def _validate_host(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    found = as_text(value)
    if is_sloppy_address(found):
        run.report("invalid-host-name", Sentence("`{}` is an IP address; write a DNS name", found), At(owner, key))
    elif found and not _is_host(found):
        run.report("invalid-host-name", Sentence("`{}` is not a valid host; {}", found, _HOST), At(owner, key))


def _is_host(text: str) -> bool:
    return len(text) <= 253 and is_dns_subdomain(text.removeprefix("*."))


def _check_path(owner: Fields, entry: Entry, run: Validation) -> None:
    kind, path = as_text(owner.get("pathType")), as_text(owner.get("path"))
    if not is_set(owner.get("pathType")):
        run.report_missing("a path", owner, "pathType", entry)
        return
    is_strict = kind in ("Exact", "Prefix")
    if kind not in _PATH_TYPES:
        run.report_unsupported("pathType", At(owner, "pathType"), _PATH_TYPES)
    elif path and not path.startswith("/"):
        run.invalid(Sentence("`path` is `{}`, but must start with `/`", path), At(owner, "path"))
    elif not path and is_strict:
        message = Sentence("`pathType: {}` requires a `path` that starts with `/`; set it", kind)
        run.report("missing-field", message, find_value(owner, "path", entry))
    for part in ("//", "/./", "/../", "%2f", "%2F") if is_strict else ():
        if part in path:
            run.invalid(Sentence("`path` is `{}`, but must not contain `{}`", path, part), At(owner, "path"))
    for end in ("/..", "/.") if is_strict else ():
        if path.endswith(end):
            run.invalid(Sentence("`path` is `{}`, but must not end with `{}`", path, end), At(owner, "path"))
    _check_backend("backend", owner, entry, run)


def _check_backend(field: str, owner: Fields, entry: Entry, run: Validation) -> None:
    backend = as_mapping(owner.get(field))
    given = [name for name in ("resource", "service") if isinstance(backend.get(name), dict)]
    if len(given) > 1:
        run.report(
            "invalid-form",
            Sentence("`{}` cannot have both `resource` and `service`; delete one of them", field),
            (backend, given[0]),
        )
    elif given:
        {"resource": _resource, "service": _service}[given[0]](given[0], backend[given[0]], backend, run)
    else:
        run.report(
            "missing-field",
            Sentence("`{}` requires `service` or `resource`; set one of them", field),
            find_entry(owner, field, entry),
        )


def _check_service(service: Fields, entry: Entry, run: Validation) -> None:
    name = as_text(service.get("name"))
    is_valid, hint = (is_dns_label, DNS_LABEL) if run.release >= (1, 36) else (is_dns_label_1035, DNS_LABEL_1035)
    if name and not is_valid(name):
        run.report(
            "invalid-object-name",
            Sentence("`{}` is not a valid name of a Service; {}", name, hint),
            At(service, "name"),
        )
    port = as_mapping(service.get("port"))
    port_name, port_number = as_text(port.get("name")), as_integer(port.get("number")) or 0
    if port_name and port_number:
        message = Sentence("`port` has both `name: {}` and `number: {}`; delete one of them", port_name, port_number)
        run.report("invalid-form", message, At(port, "name"))
    elif port_name:
        if not is_port_name(port_name):
            run.report(
                "invalid-port-name",
                Sentence("`{}` is not a valid port name; {}", port_name, PORT_NAME),
                At(port, "name"),
            )
    elif port_number:
        validate_port("number", port["number"], port, run)
    elif is_empty(port.get("name")) and port.get("number") in (None, 0):
        message = Sentence("`service` requires a `port` with a `name` or a `number`; set one of them")
        run.report("missing-field", message, find_entry(service, "port", entry))


def _validate_controller(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    controller = as_text(value)
    size = len(controller.encode(errors="replace"))
    if size > 250:
        run.report(
            "out-of-range", Sentence("`{}` has `{}` bytes, and must have at most 250", key, size), At(owner, key)
        )
    elif controller and not is_domain_prefixed_path(controller):
        message = Sentence(
            "`{}` is not a valid controller; write a domain and a path, such as `example.com/ingress`", controller
        )
        run.invalid(message, At(owner, key))


def _check_parameters(parameters: Fields, entry: Entry, run: Validation) -> None:
    namespace, scope = parameters.get("namespace"), as_text(parameters.get("scope"))
    # The API server sets `scope: Cluster` if it is not set.
    if is_set(parameters.get("scope")) and scope not in _SCOPES:
        run.report_unsupported("scope", At(parameters, "scope"), _SCOPES)
    elif scope == "Namespace":
        if not is_set(namespace):
            run.report_missing("`scope: Namespace`", parameters, "namespace", entry)
        elif not is_dns_label(as_text(namespace)):
            message = Sentence("`{}` is not a valid namespace name; {}", as_text(namespace), DNS_LABEL)
            run.report("invalid-object-name", message, At(parameters, "namespace"))
    elif is_set(namespace):
        run.report(
            "invalid-form",
            "`namespace` requires `scope: Namespace`; set it or delete `namespace`",
            At(parameters, "namespace"),
        )


def _check_policy_port(port: Fields, entry: Entry, run: Validation) -> None:
    first, last = port.get("port"), as_integer(port.get("endPort"))
    if type(first) is int:
        validate_port("port", port["port"], port, run)
        validate_port("endPort", port.get("endPort"), port, run)
        if last is not None and last < first:
            message = Sentence("`endPort` is `{}`, but must be at least `port`, which is `{}`", last, first)
            run.report("out-of-range", message, At(port, "endPort"))
        return
    if last is not None:
        run.report(
            "invalid-form", "`endPort` requires a number as `port`; set it or delete `endPort`", At(port, "endPort")
        )
    if isinstance(first, str) and not is_port_name(first):
        run.report(
            "invalid-port-name", Sentence("`{}` is not a valid port name; {}", first, PORT_NAME), At(port, "port")
        )


def _check_peer(peer: Fields, entry: Entry, run: Validation) -> None:
    given = [field for field in ("podSelector", "namespaceSelector", "ipBlock") if is_set(peer.get(field))]
    if not given:
        message = Sentence("a peer requires `podSelector`, `namespaceSelector` or `ipBlock`; set one of them")
        run.report("missing-field", message, entry)
    elif "ipBlock" in given and len(given) > 1:
        message = Sentence("a peer cannot have both `ipBlock` and `{}`; write two peers", given[0])
        run.report("invalid-form", message, find_entry(peer, "ipBlock", entry))


def _check_block(block: Fields, entry: Entry, run: Validation) -> None:
    cidr = as_text(block.get("cidr"))
    network = parse_cidr(cidr)
    if cidr and (fault := describe_cidr_fault(cidr, run.release)):
        run.report("invalid-host-name", fault, At(block, "cidr"))
    for found, node in iter_texts(block.get("except")) if network else ():
        excepted = parse_cidr(found)
        if fault := describe_cidr_fault(found, run.release):
            run.report("invalid-host-name", fault, node)
        elif (
            network
            and excepted
            and (
                excepted.version != network.version
                or excepted.network_address not in network
                or excepted.prefixlen <= network.prefixlen
            )
        ):
            run.invalid(
                Sentence("`{}` is not a strict subset of the block `{}`; except a smaller network in it", found, cidr),
                node,
            )


def _policy_rules(peers: str) -> Validator:
    ports = items("a port", {"protocol": one_of("TCP", "UDP", "SCTP")}, _check_policy_port)
    return items("a rule", {"ports": ports, peers: items("a peer", _PEER, _check_peer)})


_service = mapping({}, "name", _check_service)
_PEER = {
    "podSelector": validate_label_selector,
    "namespaceSelector": validate_label_selector,
    "ipBlock": mapping({}, "cidr", _check_block),
}
_paths = items("a path", {}, _check_path)
_TLS = {
    "hosts": texts(is_valid=_is_host, fault=("invalid-host-name", f"`{{}}` is not a valid host; {_HOST}")),
    "secretName": dns_subdomain("invalid-object-name", "name of a Secret"),
}
_INGRESS = {
    "ingressClassName": dns_subdomain("invalid-object-name", "name of an IngressClass", allow_empty=False),
    "rules": items("a rule", {"host": _validate_host, "http": mapping({"paths": _paths}, "paths")}),
    "tls": items("TLS", _TLS),
}
_INGRESS_CLASS = {
    "controller": _validate_controller,
    "parameters": mapping(_REFERENCE, "kind", "name", _check_parameters),
}
_NETWORK_POLICY = {
    "egress": _policy_rules("to"),
    "ingress": _policy_rules("from"),
    "podSelector": validate_label_selector,
    "policyTypes": at_most(2, texts("Ingress", "Egress"), at_key=False),
}

KINDS = {
    "Ingress": Kind(spec("an Ingress", _INGRESS, _check_ingress)),
    "IngressClass": Kind(spec("an IngressClass", _INGRESS_CLASS, "controller")),
    "NetworkPolicy": Kind(spec("a NetworkPolicy", _NETWORK_POLICY)),
}
