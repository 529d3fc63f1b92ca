"""Validate APIServices."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    find_key,
    is_empty,
    require_fields,
    validate_number,
)
from jobgen.check.admission.names import (
    DNS_LABEL_1035,
    DNS_SUBDOMAIN,
    PATH_SEGMENT_NAME,
    is_dns_label_1035,
    is_dns_subdomain,
)
from jobgen.k8s.nodes import as_integer, as_text
from jobgen.model.data import Node, value_of

NAME_FORMAT = PATH_SEGMENT_NAME
_PRIORITIES = {"groupPriorityMinimum": validate_number(1, 20000), "versionPriority": validate_number(1, 1000)}


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the group and version, which make the name, the priorities and the service."""
    spec, key = run.spec, find_key(obj, "spec", obj)
    group, version = as_text(spec.get("group")), as_text(spec.get("version"))
    name = as_text(run.metadata.get("name"))
    if name and name != f"{version}.{group}":
        message = f"the name is `{name}`, but must be version and group, `{version}.{group}`"
        run.report("invalid-name", message, run.metadata["name"])
    require_fields("an APIService", spec, ("version", *_PRIORITIES), key, run)
    if not group and version != "v1":
        require_fields("an APIService", spec, ("group",), key, run)
    if group and not is_dns_subdomain(group):
        run.report("invalid-value", f"`{group}` is not a valid API group; {DNS_SUBDOMAIN}", spec["group"])
    if version and not is_dns_label_1035(version):
        run.report("invalid-value", f"`{version}` is not a valid version; {DNS_LABEL_1035}", spec["version"])
    for field, validate_priority in _PRIORITIES.items():
        validate_priority(field, spec.get(field), spec, run)
    _validate_service(spec, key, run)


def _validate_service(spec: Mapping[str, Node], key: Node, run: Validation) -> None:
    service, skips = spec.get("service"), value_of(spec.get("insecureSkipTLSVerify")) is True
    if not isinstance(service, dict):
        for field, is_given in (("caBundle", not is_empty(spec.get("caBundle"))), ("insecureSkipTLSVerify", skips)):
            if is_given:
                message = f"`{field}` requires `service`; delete it, or name the Service that serves the API"
                run.report("invalid-form", message, find_key(spec, field, key))
        return
    require_fields("`service`", service, ("namespace", "name"), find_key(spec, "service", key), run)
    port = as_integer(service.get("port"))
    if port is not None and not 0 < port < 65536:
        run.report("invalid-port", f"`port` is `{port}`, but must be between 1 and 65535", service["port"])
    if skips and not is_empty(spec.get("caBundle")):
        message = "`insecureSkipTLSVerify` cannot be true if `caBundle` is set; delete one of them"
        run.report("invalid-form", message, spec["insecureSkipTLSVerify"])
