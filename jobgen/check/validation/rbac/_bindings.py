"""Validate the subjects and the role of RoleBindings and ClusterRoleBindings."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    find_key,
    is_set,
    iter_items,
    report_missing,
    report_unsupported,
    require_fields,
)
from jobgen.check.admission.names import DNS_SUBDOMAIN, PATH_SEGMENT, is_dns_subdomain, is_path_segment
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node

_GROUP = "rbac.authorization.k8s.io"
_SUBJECT_KINDS = ("ServiceAccount", "User", "Group")


def validate_binding(obj: Mapping[str, Node], run: Validation, kinds: tuple[str, ...], *, namespaced: bool) -> None:
    """Validate the role, which has one of these kinds, and the subjects that get it."""
    if is_set(obj.get("roleRef")):
        _validate_role(as_mapping(obj["roleRef"]), find_key(obj, "roleRef", obj), kinds, run)
    else:
        report_missing("a binding", obj, "roleRef", obj, run)
    for subject, node in iter_items("subjects", obj.get("subjects")):
        _validate_subject(subject, node, run, namespaced=namespaced)


def _validate_role(role: Mapping[str, Node], key: Node, kinds: tuple[str, ...], run: Validation) -> None:
    _validate_reference(role, key, kinds, _GROUP, run)
    require_fields("`roleRef`", role, ("name",), key, run)
    name = as_text(role.get("name"))
    if not is_path_segment(name):
        run.report("invalid-object-name", f"`{name}` is not a valid role name; {PATH_SEGMENT}", role["name"])


def _validate_subject(subject: Mapping[str, Node], node: Node, run: Validation, *, namespaced: bool) -> None:
    require_fields("a subject", subject, ("name",), node, run)
    name, kind = as_text(subject.get("name")), as_text(subject.get("kind"))
    is_account = kind == "ServiceAccount"
    _validate_reference(subject, node, _SUBJECT_KINDS, "" if is_account else _GROUP, run)
    if is_account and name and not is_dns_subdomain(name):
        message = f"`{name}` is not a valid name of a ServiceAccount; {DNS_SUBDOMAIN}"
        run.report("invalid-object-name", message, subject["name"])
    if is_account and not namespaced:
        require_fields("a ServiceAccount in a ClusterRoleBinding", subject, ("namespace",), node, run)


def _validate_reference(
    reference: Mapping[str, Node], node: Node, kinds: tuple[str, ...], group: str, run: Validation
) -> None:
    """Validate the kind and the group of a role or a subject; the API server sets the group if it is not set."""
    if as_text(reference.get("kind")) not in kinds:
        if as_text(reference.get("kind")):
            report_unsupported("kind", reference["kind"], kinds, run)
        else:
            require_fields("a reference", reference, ("kind",), node, run)
        return
    found = as_text(reference.get("apiGroup"))
    if found and found != group:
        wanted = f"must be `{group}`" if group else "must not be set, because ServiceAccounts are in the core group"
        run.report("invalid-value", f"`apiGroup` is `{found}`, but {wanted}", reference["apiGroup"])
