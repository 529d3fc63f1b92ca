"""Validate the parts that Workloads and PodGroups share."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    find_key,
    is_set,
    iter_items,
    require_fields,
    validate_enum,
    validate_number,
    validate_string,
)
from jobgen.check.admission.names import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    LABEL_KEY,
    is_dns_label,
    is_dns_subdomain,
    is_label_key,
)
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.model.data import Node

VERSION = "v1alpha2"
"""The version of the API; the fields of older ones differ."""

_MAX_CLAIMS = 4
_CLAIM_FIELDS = ("resourceClaimName", "resourceClaimTemplateName")
validate_short_name = validate_string("invalid-value", "name", is_dns_label, DNS_LABEL)
validate_object_name = validate_string("invalid-object-name", "object name", is_dns_subdomain, DNS_SUBDOMAIN)
_validate_topology_key = validate_string("invalid-label", "label key", is_label_key, LABEL_KEY)
_validate_mode = validate_enum("Pod", "PodGroup")
_validate_count = validate_number(1)
_validate_priority = validate_number(-(2**31), 1_000_000_000)


def is_validated(obj: Mapping[str, Node]) -> bool:
    """Return whether an object has the version whose fields are validated."""
    return as_text(obj.get("apiVersion")).endswith(f"/{VERSION}")


def validate_group(group: Mapping[str, Node], node: Node, run: Validation) -> None:
    """Validate the policy, the constraints and the claims of a group of pods."""
    _validate_policy(as_mapping(group.get("schedulingPolicy")), find_key(group, "schedulingPolicy", node), run)
    topology = as_mapping(group.get("schedulingConstraints")).get("topology")
    if len(as_list(topology)) > 1:
        run.report("out-of-range", f"`topology` has `{len(as_list(topology))}` items; it can have at most 1", topology)
    for constraint, place in iter_items("topology", topology):
        require_fields("a constraint", constraint, ("key",), place, run)
        _validate_topology_key("key", constraint.get("key"), constraint, run)
    _validate_claims(group.get("resourceClaims"), run)
    _validate_mode("disruptionMode", group.get("disruptionMode"), group, run)
    validate_object_name("priorityClassName", group.get("priorityClassName"), group, run)
    _validate_priority("priority", group.get("priority"), group, run)


def _validate_policy(policy: Mapping[str, Node], key: Node, run: Validation) -> None:
    given = [field for field in ("basic", "gang") if is_set(policy.get(field))]
    if len(given) != 1:
        message = f"`schedulingPolicy` requires exactly one of `basic` and `gang`, got {len(given)}"
        run.report("invalid-form", message, find_key(policy, "gang", key))
    gang = policy.get("gang")
    if isinstance(gang, dict):
        require_fields("`gang`", gang, ("minCount",), find_key(policy, "gang", key), run)
        _validate_count("minCount", gang.get("minCount"), gang, run)


def _validate_claims(claims: Node, run: Validation) -> None:
    if len(as_list(claims)) > _MAX_CLAIMS:
        message = f"`resourceClaims` has `{len(as_list(claims))}` items; it can have at most {_MAX_CLAIMS}"
        run.report("out-of-range", message, claims)
        return
    names: set[str] = set()
    for claim, node in iter_items("resourceClaims", claims):
        require_fields("a claim", claim, ("name",), node, run)
        validate_short_name("name", claim.get("name"), claim, run)
        name = as_text(claim.get("name"))
        if name and name in names:
            run.report("duplicate-item", f"two claims are named `{name}`; rename one of them", claim["name"])
        names.add(name)
        if sum(is_set(claim.get(field)) for field in _CLAIM_FIELDS) != 1:
            message = "a claim requires exactly one of `resourceClaimName` and `resourceClaimTemplateName`"
            run.report("invalid-resource-claim", message, node)
        for field in _CLAIM_FIELDS:
            validate_object_name(field, claim.get(field), claim, run)
