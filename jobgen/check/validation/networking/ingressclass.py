"""Validate IngressClasses."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    find_key,
    is_set,
    report_missing,
    report_unsupported,
    require_fields,
)
from jobgen.check.admission.names import DNS_LABEL, is_dns_label, is_dns_subdomain
from jobgen.check.validation.networking._references import validate_reference
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern

_MAX_CONTROLLER_BYTES = 250
_SCOPES = ("Cluster", "Namespace")
_url_path = lazy_pattern(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the controller and the reference to its parameters."""
    spec, key = run.spec, find_key(obj, "spec", obj)
    require_fields("an IngressClass", spec, ("controller",), key, run)
    controller = as_text(spec.get("controller"))
    domain, _, path = controller.partition("/")
    if len(controller.encode(errors="replace")) > _MAX_CONTROLLER_BYTES:
        message = f"`controller` must have at most {_MAX_CONTROLLER_BYTES} bytes, got `{len(controller)}`"
        run.report("out-of-range", message, spec["controller"])
    elif controller and not (is_dns_subdomain(domain) and _url_path.fullmatch(path)):
        message = f"`{controller}` is not a valid controller; write a domain and a path, such as `example.com/ingress`"
        run.report("invalid-value", message, spec["controller"])
    parameters = spec.get("parameters")
    if isinstance(parameters, dict):
        _validate_parameters(parameters, find_key(spec, "parameters", key), run)


def _validate_parameters(parameters: Mapping[str, Node], key: Node, run: Validation) -> None:
    validate_reference("`parameters`", parameters, ("kind", "name"), key, run)
    namespace, scope = parameters.get("namespace"), as_text(parameters.get("scope"))
    # The API server sets `scope: Cluster` if it is not set.
    if is_set(parameters.get("scope")) and scope not in _SCOPES:
        report_unsupported("scope", parameters["scope"], _SCOPES, run)
    elif scope == "Namespace":
        if not is_set(namespace):
            report_missing("`scope: Namespace`", parameters, "namespace", key, run)
        elif not is_dns_label(as_text(namespace)):
            message = f"`{as_text(namespace)}` is not a valid namespace name; {DNS_LABEL}"
            run.report("invalid-object-name", message, namespace)
    elif is_set(namespace):
        run.report("invalid-form", "`namespace` requires `scope: Namespace`; set it or delete `namespace`", namespace)
