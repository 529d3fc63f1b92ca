"""Validate the requests, constraints and configuration of claims."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    find_key,
    is_empty,
    is_set,
    iter_items,
    iter_texts,
    report_unsupported,
    require_fields,
    validate_enum,
)
from jobgen.check.admission.names import is_dns_label
from jobgen.check.validation.resource._names import (
    QUALIFIED_NAME,
    has_size,
    is_qualified_name,
    iter_limited,
    report_duplicate,
    validate_class_name,
    validate_device_name,
    validate_taint_key,
    validate_taint_value,
)
from jobgen.check.validation.resource._selectors import MAX_ITEMS, validate_configuration, validate_selectors
from jobgen.k8s.device_catalog import ADMIN_LABEL
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text
from jobgen.model.data import Node, value_of

_MAX_ALTERNATIVES = 8
_FLAT_VERSIONS = ("v1beta1", "v1alpha3")
"""Versions in which a request has the fields that are in `exactly` in others."""
_EXACT_FIELDS = ("deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity")
_PRIORITIZED_SINCE = _ADMIN_SINCE = (1, 34)
_TAINTS_SINCE = _DISTINCT_SINCE = (1, 36)
_MODES = ("All", "ExactCount")
_OPERATORS = ("Equal", "Exists")
_validate_effect = validate_enum("", "NoSchedule", "NoExecute", "None")

_RequestNames = dict[str, frozenset[str]]


def validate_claim_spec(spec: Mapping[str, Node], version: str, run: Validation) -> None:
    """Validate the spec of a claim, or of the claims of a template."""
    devices = as_mapping(spec.get("devices"))
    names = _collect_names(devices)
    seen: set[str] = set()
    for request, node in iter_limited(devices, "requests", MAX_ITEMS, run):
        _validate_request(request, node, version, run)
        _validate_unique(request, "requests", seen, node, run)
    for constraint, node in iter_limited(devices, "constraints", MAX_ITEMS, run):
        _validate_references(constraint, names, run)
        _validate_constraint(constraint, node, run)
    for config, node in iter_limited(devices, "config", MAX_ITEMS, run):
        _validate_references(config, names, run)
        validate_configuration(config, node, run)


def _collect_names(devices: Mapping[str, Node]) -> _RequestNames:
    """Return the names of all requests, each with those of its alternatives."""
    return {
        as_text(request.get("name")): frozenset(
            as_text(as_mapping(one).get("name")) for one in as_list(request.get("firstAvailable"))
        )
        for request in map(as_mapping, as_list(devices.get("requests")))
    }


def _validate_unique(item: Mapping[str, Node], field: str, seen: set[str], node: Node, run: Validation) -> None:
    name = as_text(item.get("name"))
    if name and name in seen:
        report_duplicate(name, field, item["name"], run)
    seen.add(name)


def _validate_name(request: Mapping[str, Node], node: Node, run: Validation) -> None:
    require_fields("a request", request, ("name",), node, run)
    if as_text(request.get("name")):
        validate_device_name("name", request["name"], request, run)


def _validate_request(request: Mapping[str, Node], node: Node, version: str, run: Validation) -> None:
    _validate_name(request, node, run)
    flat = version in _FLAT_VERSIONS
    given = [field for field in _EXACT_FIELDS if is_set(request.get(field))] if flat else []
    exactly: Node = request if given else None if flat else request.get("exactly")
    alternatives = as_list(request.get("firstAvailable")) if run.release >= _PRIORITIZED_SINCE else ()
    field = "deviceClassName" if flat else "exactly"
    if isinstance(exactly, dict) and alternatives:
        message = (
            f"a request cannot have both `{given[0] if given else field}` and `firstAvailable`; delete one of them"
        )
        run.report("invalid-form", message, find_key(request, "firstAvailable", node))
    elif alternatives:
        seen: set[str] = set()
        for one, place in iter_limited(request, "firstAvailable", _MAX_ALTERNATIVES, run):
            _validate_name(one, place, run)
            _validate_exact_request(one, place, run)
            _validate_unique(one, "firstAvailable", seen, place, run)
    elif isinstance(exactly, dict):
        _validate_exact_request(exactly, node if flat else find_key(request, "exactly", node), run)
    else:
        run.report("missing-field", f"a request requires `{field}` or `firstAvailable`; set one of them", node)


def _validate_exact_request(request: Mapping[str, Node], node: Node, run: Validation) -> None:
    require_fields("a request", request, ("deviceClassName",), node, run)
    validate_class_name("deviceClassName", request.get("deviceClassName"), request, run)
    validate_selectors(request, run)
    mode, count = as_text(request.get("allocationMode")) or "ExactCount", as_integer(request.get("count")) or 0
    if mode not in _MODES:
        report_unsupported("allocationMode", request["allocationMode"], _MODES, run)
    elif mode == "All" and count:
        message = f"`allocationMode: All` cannot have a `count`, got `{count}`; delete it"
        run.report("invalid-form", message, request["count"])
    elif count < 0:
        run.report("out-of-range", f"`count` must be at least 1, got `{count}`", request["count"])
    if value_of(request.get("adminAccess")) is True and run.release >= _ADMIN_SINCE:
        _validate_admin_access(request["adminAccess"], run)
    if run.release >= _TAINTS_SINCE:
        for toleration, _ in iter_items("tolerations", request.get("tolerations")):
            _validate_toleration(toleration, run)


def _validate_admin_access(node: Node, run: Validation) -> None:
    namespace = as_text(run.metadata.get("namespace"))
    # The cluster may have a namespace that the repository does not define.
    if namespace in run.read_catalog().other_namespaces:
        message = f"`adminAccess` requires a namespace with the label `{ADMIN_LABEL}: true`, but Namespace"
        message += f" `{namespace}` does not have it; add it, or delete the field"
        run.report("invalid-resource-claim", message, node)


def _validate_toleration(toleration: Mapping[str, Node], run: Validation) -> None:
    validate_taint_key("key", toleration.get("key"), toleration, run)
    operator, value = as_text(toleration.get("operator")) or "Equal", toleration.get("value")
    if operator not in _OPERATORS:
        report_unsupported("operator", toleration["operator"], _OPERATORS, run)
    elif operator == "Equal":
        validate_taint_value("value", value, toleration, run)
    elif as_text(value):
        message = f"`operator: Exists` cannot have a `value`, got `{as_text(value)}`; delete it"
        run.report("invalid-toleration", message, value)
    if is_set(toleration.get("effect")):
        _validate_effect("effect", toleration["effect"], toleration, run)


def _validate_constraint(constraint: Mapping[str, Node], node: Node, run: Validation) -> None:
    fields = ("matchAttribute", "distinctAttribute") if run.release >= _DISTINCT_SINCE else ("matchAttribute",)
    given = next((field for field in fields if is_set(constraint.get(field))), "")
    if not given:
        names = " or ".join(f"`{field}`" for field in fields)
        run.report("missing-field", f"a constraint requires {names}; set it", node)
        return
    found = as_text(constraint[given])
    if not is_qualified_name(found, needs_domain=True):
        message = f"`{found}` is not a valid attribute; {QUALIFIED_NAME}"
        run.report("invalid-value", message, constraint[given])


def _validate_references(owner: Mapping[str, Node], names: _RequestNames, run: Validation) -> None:
    """Validate the list `requests` of a constraint or a configuration: names of requests, or of their alternatives."""
    if is_empty(owner.get("requests")) or not has_size(owner, "requests", MAX_ITEMS, run):
        return
    seen: set[str] = set()
    for found, node in iter_texts(owner.get("requests")):
        request, slash, alternative = found.partition("/")
        known = request in names and (not slash or alternative in names[request])
        if not known or not all(map(is_dns_label, found.split("/"))):
            message = f"`{found}` is not a request of the claim; write the name of a request, or `request/alternative`"
            run.report("invalid-resource-claim", message, node)
        if found in seen:
            report_duplicate(found, "requests", node, run)
        seen.add(found)
