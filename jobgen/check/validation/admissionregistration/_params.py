"""Validate the parameters of policies: their kind, and how a binding refers to them."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, get_key, is_empty, is_set, report_missing, validate_enum
from jobgen.check.admission.names import (
    DNS_LABEL_1035,
    DNS_SUBDOMAIN,
    PATH_SEGMENT,
    is_dns_label_1035,
    is_dns_subdomain,
    is_path_segment,
)
from jobgen.check.admission.scheduling import validate_label_selector
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node, locatable


def validate_param_kind(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    """Validate the version and the kind of a policy's parameters."""
    if not isinstance(value, dict):
        return
    version, kind = as_text(value.get("apiVersion")), as_text(value.get("kind"))
    if not version:
        report_missing("`paramKind`", value, "apiVersion", key, run)
    else:
        _validate_version(version, value["apiVersion"], run)
    if not kind:
        report_missing("`paramKind`", value, "kind", key, run)
    elif not is_dns_label_1035(kind.lower()):
        run.report("invalid-value", f"`{kind}` is not a kind; in lower case, {DNS_LABEL_1035}", value["kind"])


def _validate_version(text: str, node: Node, run: Validation) -> None:
    group, _, version = text.rpartition("/")
    if "/" in group or not version:
        run.report("invalid-value", f"`{text}` is not an API version; write `v1` or `group/version`", node)
    elif group and not is_dns_subdomain(group):
        run.report("invalid-value", f"`{group}` is not an API group; {DNS_SUBDOMAIN}", node)
    elif not is_dns_label_1035(version):
        run.report("invalid-value", f"`{version}` is not a version; {DNS_LABEL_1035}", node)


def validate_param_ref(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    """Validate the reference of a binding to parameters: a name or a selector, and what to do without them."""
    if not isinstance(value, dict):
        return
    name, has_selector = as_text(value.get("name")), is_set(value.get("selector"))
    if name and not is_path_segment(name):
        run.report("invalid-name", f"`{name}` is not a valid object name; {PATH_SEGMENT}", value["name"])
    if name and has_selector:
        message = "`paramRef` must have either `name` or `selector`; remove one of them"
        run.report("invalid-form", message, get_key(value, "selector"))
    if not name and not has_selector:
        run.report(
            "missing-field", "`paramRef` must have either `name` or `selector`; set one of them", locatable(value, key)
        )
    validate_label_selector("selector", value.get("selector"), value, run)
    if is_empty(value.get("parameterNotFoundAction")):
        report_missing("`paramRef`", value, "parameterNotFoundAction", key, run)
    else:
        validate_enum("Allow", "Deny")("parameterNotFoundAction", value["parameterNotFoundAction"], value, run)


def validate_policy_name(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the name of the policy of a binding."""
    spec = as_mapping(obj.get("spec"))
    name = as_text(spec.get("policyName"))
    if not name:
        report_missing("a binding", spec, "policyName", get_key(obj, "spec"), run)
    elif not is_dns_subdomain(name):
        run.report("invalid-name", f"`{name}` is not a valid name of a policy; {DNS_SUBDOMAIN}", spec["policyName"])
