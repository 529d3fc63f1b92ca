"""Validate the kinds of `scheduling.k8s.io`: priority classes, and groups of pods that are scheduled together."""

from __future__ import annotations

from jobgen.check.admission.fields import (
    Check,
    Fields,
    Validation,
    ValidatorTable,
    all_of,
    at_most,
    dns_label,
    dns_subdomain,
    fields,
    find_key,
    inside,
    is_set,
    items,
    mapping,
    number,
    one_of,
    path_segment,
    report_missing,
)
from jobgen.check.validation.kinds import Kind, label_key, object_name, spec
from jobgen.k8s.nodes import as_integer, as_text
from jobgen.model.data import Node, value_of

_SYSTEM_PREFIX = "system-"
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_MAX_PRIORITY = 1_000_000_000
_CLAIM_FIELDS = ("resourceClaimName", "resourceClaimTemplateName")
_short_name = dns_label("invalid-value", "name")
_group_name = dns_subdomain("invalid-value", "API group")
_segment = path_segment("invalid-object-name", "name")


def _check_priority_class(obj: Fields, place: Node, run: Validation) -> None:
    """Check the name and the value; those of Kubernetes itself have a prefix."""
    field = "name" if as_text(run.metadata.get("name")) else "generateName"
    name, value = as_text(run.metadata.get(field)), as_integer(obj.get("value")) or 0
    expected = _SYSTEM_CLASSES.get(name)
    if not name.startswith(_SYSTEM_PREFIX):
        if value > _MAX_PRIORITY:
            run.report("out-of-range", f"`value` must be at most {_MAX_PRIORITY}, got `{value}`", obj["value"])
    elif expected is None:
        message = f"`{name}` begins with `{_SYSTEM_PREFIX}`, which is reserved for Kubernetes; use another name"
        run.report("invalid-name", message, run.metadata[field])
    elif value != expected:
        message = f"`value` of `{name}` must be {expected}, got `{value_of(obj.get('value'))}`"
        run.report("invalid-value", message, obj.get("value") or run.metadata[field])
    elif value_of(obj.get("globalDefault")) is True:
        run.report("invalid-value", f"`globalDefault` of `{name}` must be false; delete it", obj["globalDefault"])
    if value_of(obj.get("preemptionPolicy")) == "":
        report_missing("a PriorityClass", obj, "preemptionPolicy", obj, run)


def _check_policy(policy: Fields, place: Node, run: Validation) -> None:
    given = [field for field in ("basic", "gang") if is_set(policy.get(field))]
    if len(given) != 1:
        message = f"`schedulingPolicy` requires exactly one of `basic` and `gang`, got {len(given)}"
        run.report("invalid-form", message, find_key(policy, "gang", place))


def _require_workload(reference: Fields, place: Node, run: Validation) -> None:
    if not isinstance(reference.get("workload"), dict):
        report_missing("`podGroupTemplateRef`", reference, "workload", place, run)


def _check_claim(claim: Fields, place: Node, run: Validation) -> None:
    if sum(is_set(claim.get(field)) for field in _CLAIM_FIELDS) != 1:
        message = "a claim requires exactly one of `resourceClaimName` and `resourceClaimTemplateName`"
        run.report("invalid-resource-claim", message, place)


_CLAIM: ValidatorTable = {"name": _short_name, **dict.fromkeys(_CLAIM_FIELDS, object_name)}
_claims = items(
    "a claim", _CLAIM, "name", _check_claim, unique=("name", "two claims are named `{}`; rename one of them")
)
_topology = items("a constraint", {"key": label_key}, "key")
_GROUP: ValidatorTable = {
    "disruptionMode": one_of("Pod", "PodGroup"),
    "priority": number(-(2**31), _MAX_PRIORITY),
    "priorityClassName": object_name,
    "resourceClaims": at_most(4, _claims, at_key=False),
    "schedulingConstraints": mapping({"topology": all_of(at_most(1, at_key=False), _topology)}),
}
_check_policy_of_group = inside(
    "schedulingPolicy", "`schedulingPolicy`", {"gang": mapping({"minCount": number(1)}, "minCount")}, _check_policy
)
_templates = items(
    "a template",
    {**_GROUP, "name": _short_name},
    "name",
    _check_policy_of_group,
    unique=("name", "two templates are named `{}`; rename one of them"),
)
_WORKLOAD: ValidatorTable = {
    "controllerRef": mapping({"apiGroup": _group_name, "kind": _segment, "name": _segment}, "kind", "name"),
    "podGroupTemplates": at_most(8, _templates, at_key=False),
}
_TEMPLATE_NAMES: ValidatorTable = {"workloadName": object_name, "podGroupTemplateName": _short_name}
_template = mapping({"workload": mapping(_TEMPLATE_NAMES, "workloadName", "podGroupTemplateName")}, _require_workload)


def _only_v1alpha2(check: Check) -> Check:
    """Return a check of objects of this version; the fields of older ones differ."""

    def check_version(obj: Fields, place: Node, run: Validation) -> None:
        if as_text(obj.get("apiVersion")).endswith("/v1alpha2"):
            check(obj, place, run)

    return check_version


KINDS = {
    "PodGroup": Kind(
        _only_v1alpha2(spec("a PodGroup", {**_GROUP, "podGroupTemplateRef": _template}, _check_policy_of_group))
    ),
    "PriorityClass": Kind(
        fields(
            "a PriorityClass", {"preemptionPolicy": one_of("", "PreemptLowerPriority", "Never")}, _check_priority_class
        )
    ),
    "Workload": Kind(_only_v1alpha2(spec("a Workload", _WORKLOAD, "podGroupTemplates"))),
}
