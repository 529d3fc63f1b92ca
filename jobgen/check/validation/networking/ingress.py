"""Validate Ingresses."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    find_key,
    is_empty,
    is_set,
    iter_items,
    iter_texts,
    report_missing,
    report_unsupported,
    require_fields,
    validate_string,
)
from jobgen.check.admission.names import (
    DNS_LABEL,
    DNS_LABEL_1035,
    DNS_SUBDOMAIN,
    PORT_NAME,
    is_dns_label,
    is_dns_label_1035,
    is_dns_subdomain,
    is_port_name,
)
from jobgen.check.validation._addresses import is_sloppy_address
from jobgen.check.validation.networking._references import validate_reference
from jobgen.k8s.nodes import as_integer, as_mapping, as_text
from jobgen.model.data import Node

_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_FORBIDDEN_PARTS = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_ENDS = ("/..", "/.")
_validate_class_name = validate_string(
    "invalid-object-name", "name of an IngressClass", is_dns_subdomain, DNS_SUBDOMAIN, allow_empty=False
)
_validate_secret_name = validate_string("invalid-object-name", "name of a Secret", is_dns_subdomain, DNS_SUBDOMAIN)


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the backends, the hosts and paths of the rules, TLS, and the class."""
    spec = run.spec
    if not spec.get("rules") and not isinstance(spec.get("defaultBackend"), dict):
        message = "an Ingress requires `rules` or `defaultBackend`; set one of them"
        run.report("missing-field", message, find_key(obj, "spec", obj))
    if isinstance(spec.get("defaultBackend"), dict):
        _validate_backend("defaultBackend", spec, spec, run)
    for rule, node in iter_items("rules", spec.get("rules")):
        _validate_host(rule.get("host"), run)
        if isinstance(http := rule.get("http"), dict):
            _validate_paths(http, find_key(rule, "http", node), run)
    for tls, _ in iter_items("tls", spec.get("tls")):
        for text, host in iter_texts(tls.get("hosts")):
            _validate_name_or_wildcard(text, host, run)
        _validate_secret_name("secretName", tls.get("secretName"), tls, run)
    _validate_class(spec, run)


def _validate_class(spec: Mapping[str, Node], run: Validation) -> None:
    if not is_set(spec.get("ingressClassName")):
        return
    _validate_class_name("ingressClassName", spec["ingressClassName"], spec, run)
    annotations, name = as_mapping(run.metadata.get("annotations")), as_text(spec["ingressClassName"])
    if is_set(annotations.get(_CLASS_ANNOTATION)) and as_text(annotations[_CLASS_ANNOTATION]) != name:
        message = f"the annotation `{_CLASS_ANNOTATION}` differs from `ingressClassName`, which is `{name}`; delete it"
        run.report("invalid-annotation", message, annotations[_CLASS_ANNOTATION])


def _validate_host(host: Node, run: Validation) -> None:
    found = as_text(host)
    if not found:
        return
    if is_sloppy_address(found):
        run.report("invalid-host-name", f"`{found}` is an IP address; write a DNS name", host)
    else:
        _validate_name_or_wildcard(found, host, run)


def _validate_name_or_wildcard(found: str, host: Node, run: Validation) -> None:
    name = found.removeprefix("*.")
    if len(found) > 253 or not is_dns_subdomain(name):
        message = f"`{found}` is not a valid host; {DNS_SUBDOMAIN}, or such a name after `*.`"
        run.report("invalid-host-name", message, host)


def _validate_paths(http: Mapping[str, Node], key: Node, run: Validation) -> None:
    require_fields("`http`", http, ("paths",), key, run)
    for path, node in iter_items("paths", http.get("paths")):
        kind = as_text(path.get("pathType"))
        if not is_set(path.get("pathType")):
            report_missing("a path", path, "pathType", node, run)
            continue
        if kind not in _PATH_TYPES:
            report_unsupported("pathType", path["pathType"], _PATH_TYPES, run)
        else:
            _validate_path(path, kind, node, run)
        _validate_backend("backend", path, node, run)


def _validate_path(owner: Mapping[str, Node], kind: str, node: Node, run: Validation) -> None:
    path = as_text(owner.get("path"))
    exact = kind != "ImplementationSpecific"
    if not path.startswith("/"):
        if path:
            run.report("invalid-value", f"`path` is `{path}`, but must start with `/`", owner["path"])
        elif exact:
            message = f"`pathType: {kind}` requires a `path` that starts with `/`; set it"
            run.report("missing-field", message, owner.get("path") or owner or node)
    for part in _FORBIDDEN_PARTS:
        if exact and part in path:
            run.report("invalid-value", f"`path` is `{path}`, but must not contain `{part}`", owner["path"])
    for end in _FORBIDDEN_ENDS:
        if exact and path.endswith(end):
            run.report("invalid-value", f"`path` is `{path}`, but must not end with `{end}`", owner["path"])


def _validate_backend(field: str, owner: Mapping[str, Node], parent: Node, run: Validation) -> None:
    backend, node = as_mapping(owner.get(field)), find_key(owner, field, parent)
    resource, service = backend.get("resource"), backend.get("service")
    if isinstance(resource, dict) and isinstance(service, dict):
        message = f"`{field}` cannot have both `resource` and `service`; delete one of them"
        run.report("invalid-form", message, find_key(backend, "resource", node))
    elif isinstance(resource, dict):
        validate_reference("`resource`", resource, ("kind", "name"), find_key(backend, "resource", node), run)
    elif isinstance(service, dict):
        _validate_service(service, find_key(backend, "service", node), run)
    else:
        run.report("missing-field", f"`{field}` requires `service` or `resource`; set one of them", node)


def _validate_service(service: Mapping[str, Node], node: Node, run: Validation) -> None:
    require_fields("`service`", service, ("name",), node, run)
    name = as_text(service.get("name"))
    is_valid, hint = (is_dns_label, DNS_LABEL) if run.release >= (1, 36) else (is_dns_label_1035, DNS_LABEL_1035)
    if name and not is_valid(name):
        run.report("invalid-object-name", f"`{name}` is not a valid name of a Service; {hint}", service["name"])
    port = as_mapping(service.get("port"))
    port_name, number = as_text(port.get("name")), as_integer(port.get("number")) or 0
    if port_name and number:
        message = f"`port` has both `name: {port_name}` and `number: {number}`; delete one of them"
        run.report("invalid-form", message, port["name"])
    elif port_name:
        if not is_port_name(port_name):
            run.report("invalid-port-name", f"`{port_name}` is not a valid port name; {PORT_NAME}", port["name"])
    elif number:
        if not 0 < number < 65536:
            run.report("invalid-port", f"`number` is `{number}`, but must be between 1 and 65535", port["number"])
    elif is_empty(port.get("name")):
        message = "`service` requires a `port` with a `name` or a `number`; set one of them"
        run.report("missing-field", message, find_key(service, "port", node))
