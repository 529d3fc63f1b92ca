"""Validate the kinds that say who may use the API server: roles and their bindings."""

from __future__ import annotations

from jobgen.check.admission.fields import (
    Check,
    Entry,
    Fields,
    Kind,
    Table,
    Validation,
    choice,
    each,
    fields,
    is_empty,
    items,
    mapping,
    path_segment,
    require_set,
)
from jobgen.check.admission.names import DNS_SUBDOMAIN, PATH_SEGMENT_NAME, is_dns_subdomain
from jobgen.check.admission.scheduling import validate_label_selector
from jobgen.k8s.nodes import as_text
from jobgen.model.place import At
from jobgen.model.sentence import Sentence

_aggregation = mapping({"clusterRoleSelectors": each(validate_label_selector)}, "clusterRoleSelectors")


def _role_rules(*, namespaced: bool) -> Table:
    """Return the table of a role: each rule has verbs, and either resources or, in a ClusterRole, URLs."""

    def check_targets(rule: Fields, entry: Entry, run: Validation) -> None:
        if is_empty(rule.get("nonResourceURLs")):
            run.require_fields("a rule", rule, ("apiGroups", "resources"), entry)
            # Imported late: most repositories have no roles.
            from jobgen.check.granted_rights import find_vain_rights

            run.problems.extend(find_vain_rights(rule))
            return
        if namespaced:
            message = Sentence("`nonResourceURLs` cannot be in a Role, which has a namespace; use a ClusterRole")
            run.report("invalid-form", message, At(rule, "nonResourceURLs"))
        given = [field for field in ("apiGroups", "resources", "resourceNames") if not is_empty(rule.get(field))]
        if given:
            message = Sentence("a rule cannot have both `nonResourceURLs` and `{}`; write two rules", given[0])
            run.report("invalid-form", message, At(rule, "nonResourceURLs"))

    return {"rules": items("a rule", {}, "verbs", check_targets)}


def _role_reference(*kinds: str) -> Check:
    """Return a check of the kind and the group of a role or a subject; a group is set by default."""
    check_kind = choice("a reference", "kind", *kinds)

    def check(reference: Fields, entry: Entry, run: Validation) -> None:
        check_kind(reference, entry, run)
        kind, found = as_text(reference.get("kind")), as_text(reference.get("apiGroup"))
        group = "" if kind == "ServiceAccount" else "rbac.authorization.k8s.io"
        if kind in kinds and found and found != group:
            wanted = f"must be `{group}`" if group else "must not be set, because ServiceAccounts are in the core group"
            run.invalid(Sentence("`apiGroup` is `{}`, but {}", found, wanted), At(reference, "apiGroup"))

    return check


def _binding(*kinds: str, needs_namespace: bool) -> Kind:
    def check_account(subject: Fields, entry: Entry, run: Validation) -> None:
        name = as_text(subject.get("name"))
        if as_text(subject.get("kind")) != "ServiceAccount":
            return
        if name and not is_dns_subdomain(name):
            message = Sentence("`{}` is not a valid name of a ServiceAccount; {}", name, DNS_SUBDOMAIN)
            run.report("invalid-object-name", message, At(subject, "name"))
        if needs_namespace and is_empty(subject.get("namespace")):
            run.report_missing("a ServiceAccount in a ClusterRoleBinding", subject, "namespace", entry)

    subject = items("a subject", {}, "name", _role_reference("ServiceAccount", "User", "Group"), check_account)
    role = mapping({"name": path_segment("invalid-object-name", "role name")}, "name", _role_reference(*kinds))
    check = fields("a binding", {"roleRef": role, "subjects": subject}, require_set("a binding", "roleRef"))
    return Kind(check, PATH_SEGMENT_NAME)


KINDS = {
    "ClusterRole": Kind(
        fields("a ClusterRole", {**_role_rules(namespaced=False), "aggregationRule": _aggregation}), PATH_SEGMENT_NAME
    ),
    "ClusterRoleBinding": _binding("ClusterRole", needs_namespace=True),
    "Role": Kind(fields("a Role", _role_rules(namespaced=True)), PATH_SEGMENT_NAME),
    "RoleBinding": _binding("Role", "ClusterRole", needs_namespace=False),
}
