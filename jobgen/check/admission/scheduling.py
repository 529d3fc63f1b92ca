"""Validate where a pod may run: selectors, affinity, topology spread, tolerations and gates."""

from __future__ import annotations

from jobgen.check.admission.fields import (
    Fields,
    Validation,
    ValidatorTable,
    all_of,
    dns_label,
    each,
    is_empty,
    is_set,
    iter_mappings,
    iter_strings,
    mapping,
    number,
    one_of,
    qualified_name,
    report_missing,
    report_unsupported,
    require_fields,
    validate_fields,
)
from jobgen.check.admission.metadata import describe_label_key, validate_labels
from jobgen.check.admission.names import (
    DNS_SUBDOMAIN,
    LABEL_KEY,
    LABEL_VALUE,
    is_dns_subdomain,
    is_label_key,
    is_label_value,
)
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node, locatable, value_of

_SELECTOR_RULE = "invalid-selector"
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS = (*_LABEL_OPERATORS, "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")
_NONE, _ONE, _SOME = range(1), range(1, 2), range(1, 1 << 62)
_VALUE_COUNTS = {"In": _SOME, "NotIn": _SOME, "Exists": _NONE, "DoesNotExist": _NONE, "Gt": _ONE, "Lt": _ONE}
_COUNT_NAMES = {_NONE: "no values", _ONE: "exactly one value", _SOME: "at least one value"}


def _validate_requirement(key: str, item: Fields, operators: tuple[str, ...], pod: Validation) -> None:
    """Validate the operator of a requirement and the number of its values."""
    operator = as_text(item.get("operator"))
    values = item.get("values")
    if operator not in operators:
        if operator:
            report_unsupported("operator", item["operator"], operators, pod)
        else:
            report_missing("a selector", item, "operator", key, pod)
        return
    if is_set(values) and not isinstance(values, list):
        # The schema reports it.
        return
    wanted = _ONE if operators is _FIELD_OPERATORS else _VALUE_COUNTS[operator]
    count = len(values) if isinstance(values, list) else 0
    if count not in wanted:
        message = f"`{operator}` requires {_COUNT_NAMES[wanted]}, got {count}"
        pod.report(_SELECTOR_RULE, message, item.get("operator") if count else locatable(values, item.get("operator")))


def _validate_requirement_key(item: Fields, parent: str, pod: Validation) -> None:
    found = as_text(item.get("key"))
    if is_empty(item.get("key")):
        report_missing("a selector", item, "key", parent, pod)
    elif found and not is_label_key(found):
        pod.report("invalid-label", describe_label_key(found), item["key"])


def _validate_label_values(item: Fields, pod: Validation) -> None:
    for found, node in iter_strings(item.get("values")):
        if not is_label_value(found):
            pod.report("invalid-label", f"`{found}` is not a valid label value; {LABEL_VALUE}", node)


def _validate_label_requirement(key: str, item: Node, owner: Fields, pod: Validation) -> None:
    if value_of(item) is None and not pod.drops_nulls:
        # Kubernetes reads it as an empty requirement.
        require_fields("a selector", {}, ("operator", "key"), item or key, pod)
    if isinstance(item, dict):
        _validate_requirement(key, item, _LABEL_OPERATORS, pod)
        _validate_requirement_key(item, key, pod)
        _validate_label_values(item, pod)


def _validate_preferred_node_labels(key: str, item: Node, owner: Fields, pod: Validation) -> None:
    if isinstance(item, dict):
        _validate_requirement(key, item, _NODE_OPERATORS, pod)
        _validate_requirement_key(item, key, pod)


def _validate_required_node_labels(key: str, item: Node, owner: Fields, pod: Validation) -> None:
    if isinstance(item, dict):
        _validate_preferred_node_labels(key, item, owner, pod)
        _validate_label_values(item, pod)


def _validate_node_fields(key: str, item: Node, owner: Fields, pod: Validation) -> None:
    if not isinstance(item, dict):
        return
    _validate_requirement(key, item, _FIELD_OPERATORS, pod)
    field = value_of(item.get("key"))
    if field != "metadata.name":
        message = f"nodes cannot be selected by the field `{field}`; use `metadata.name`"
        pod.report(_SELECTOR_RULE, message, item.get("key") or item)
        return
    for found, node in iter_strings(item.get("values")):
        if not is_dns_subdomain(found):
            pod.report("invalid-object-name", f"`{found}` is not a valid node name; {DNS_SUBDOMAIN}", node)


validate_label_selector = mapping(
    {"matchLabels": validate_labels, "matchExpressions": each(_validate_label_requirement)}
)
_validate_required_node_term = mapping(
    {"matchExpressions": each(_validate_required_node_labels), "matchFields": each(_validate_node_fields)}
)
validate_node_selector = mapping({"nodeSelectorTerms": each(_validate_required_node_term)}, "nodeSelectorTerms")
# Kubernetes does not validate the label values of a preference.
_validate_preferred_node_term = mapping(
    {"matchExpressions": each(_validate_preferred_node_labels), "matchFields": each(_validate_node_fields)}
)


def _validate_match_label_keys(term: Fields, pod: Validation) -> None:
    """Validate the label keys whose values Kubernetes takes from the pod and adds to the selector."""
    selector = term.get("labelSelector")
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        if is_empty(term.get(field)):
            continue
        if not isinstance(selector, dict):
            pod.report(_SELECTOR_RULE, f"`{field}` requires `labelSelector`; set it", term[field])
            continue
        for found, node in iter_strings(term[field]):
            if not is_label_key(found):
                pod.report("invalid-label", describe_label_key(found), node)
    if isinstance(selector, dict) and "matchLabelKeys" in term:
        _validate_unique_keys(term, selector, pod)


def _validate_unique_keys(term: Fields, selector: Fields, pod: Validation) -> None:
    pod_labels = as_mapping(pod.metadata.get("labels"))
    mismatched = {found for found, _ in iter_strings(term.get("mismatchLabelKeys"))}
    selected = [*as_mapping(selector.get("matchLabels"))]
    selected += [as_text(item.get("key")) for item in iter_mappings(selector.get("matchExpressions"))]
    matched = list(iter_strings(term["matchLabelKeys"]))
    # The API server adds a requirement for each key that the pod has as a label.
    selected += [found for found, _ in matched if found in pod_labels]
    for found, node in matched:
        if found in mismatched:
            message = f"`{found}` is in both `matchLabelKeys` and `mismatchLabelKeys`; delete one of them"
            pod.report(_SELECTOR_RULE, message, node)
        elif selected.count(found) > 1:
            message = f"`{found}` is in both `matchLabelKeys` and `labelSelector`; delete one of them"
            pod.report(_SELECTOR_RULE, message, node)


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_validate_weight = number(1, 100)
_validate_namespace = dns_label("invalid-object-name", "namespace name", allow_empty=False)
_validate_topology_key = qualified_name("invalid-label", "label key")


def _require_weight(key: str, item: Node, owner: Fields, pod: Validation) -> None:
    if isinstance(item, dict) and not is_set(item.get("weight")):
        report_missing("a preference", item, "weight", key, pod)


def _validate_pod_affinity_term(key: str, term: Node, owner: Fields, pod: Validation) -> None:
    if isinstance(term, dict):
        validate_fields(term, _POD_AFFINITY_TERM, pod)
        _validate_match_label_keys(term, pod)
        require_fields("an affinity term", term, ("topologyKey",), key, pod)


_POD_AFFINITY_TERM: ValidatorTable = {
    "labelSelector": validate_label_selector,
    "namespaceSelector": validate_label_selector,
    "namespaces": each(_validate_namespace),
    "topologyKey": _validate_topology_key,
}
_POD_PREFERENCE: ValidatorTable = {"weight": _validate_weight, "podAffinityTerm": _validate_pod_affinity_term}
_NODE_PREFERENCE: ValidatorTable = {"weight": _validate_weight, "preference": _validate_preferred_node_term}
_validate_pod_affinity = mapping(
    {_REQUIRED: each(_validate_pod_affinity_term), _PREFERRED: each(all_of(mapping(_POD_PREFERENCE), _require_weight))}
)
_validate_node_affinity = mapping(
    {_REQUIRED: validate_node_selector, _PREFERRED: each(all_of(mapping(_NODE_PREFERENCE), _require_weight))}
)
validate_affinity = mapping(
    {
        "nodeAffinity": _validate_node_affinity,
        "podAffinity": _validate_pod_affinity,
        "podAntiAffinity": _validate_pod_affinity,
    }
)


_SPREAD_RULE = "invalid-topology-spread"


def validate_topology_spread(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    """Validate topology spread constraints; no two may have the same key and action."""
    pairs: set[tuple[str, str]] = set()
    for constraint in iter_mappings(value):
        validate_fields(constraint, _SPREAD_CONSTRAINT, pod)
        required = ("maxSkew", "topologyKey", "whenUnsatisfiable")
        require_fields("a topology spread constraint", constraint, required, key, pod)
        _validate_match_label_keys(constraint, pod)
        pair = (as_text(constraint.get("topologyKey")), as_text(constraint.get("whenUnsatisfiable")))
        if all(pair) and pair in pairs:
            message = f"two constraints have the key `{pair[0]}` with `{pair[1]}`; delete one of them"
            pod.report(_SPREAD_RULE, message, constraint["topologyKey"])
        pairs.add(pair)
        if is_set(constraint.get("minDomains")) and pair[1] != "DoNotSchedule":
            message = f"`minDomains` requires `whenUnsatisfiable: DoNotSchedule`, got `{pair[1]}`"
            pod.report(_SPREAD_RULE, message, constraint["minDomains"])


_SPREAD_CONSTRAINT: ValidatorTable = {
    "maxSkew": number(1),
    "minDomains": number(1),
    "whenUnsatisfiable": one_of("", "DoNotSchedule", "ScheduleAnyway"),
    "nodeAffinityPolicy": one_of("Honor", "Ignore"),
    "nodeTaintsPolicy": one_of("Honor", "Ignore"),
    "labelSelector": validate_label_selector,
}


_TOLERATION_RULE = "invalid-toleration"
# `Lt` and `Gt` need a feature gate that is off by default.
_TOLERATION_OPERATORS = ("Exists", "Equal")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def validate_tolerations(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    """Validate a list of tolerations."""
    if isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                _validate_toleration(item, key, pod)


def _validate_toleration(item: Fields, parent: str, pod: Validation) -> None:
    key, operator, effect = as_text(item.get("key")), as_text(item.get("operator")), as_text(item.get("effect"))
    if key:
        if not is_label_key(key):
            pod.report(_TOLERATION_RULE, f"`{key}` is not a valid taint key; {LABEL_KEY}", item["key"])
    elif operator != "Exists":
        message = "a toleration without `key` requires `operator: Exists`; set one of them"
        pod.report(_TOLERATION_RULE, message, locatable(item.get("key"), item.get("operator"), item, parent))
    if operator not in _TOLERATION_OPERATORS and operator:
        report_unsupported("operator", item["operator"], _TOLERATION_OPERATORS, pod)
    elif "value" in item:
        _validate_toleration_value(operator, item["value"], pod)
    if effect and effect not in _EFFECTS:
        report_unsupported("effect", item["effect"], _EFFECTS, pod)
    if "tolerationSeconds" in item and effect != "NoExecute" and is_set(item["tolerationSeconds"]):
        message = f"`tolerationSeconds` requires `effect: NoExecute`, got `{effect}`"
        pod.report(_TOLERATION_RULE, message, item.get("effect") or item["tolerationSeconds"])


def _validate_toleration_value(operator: str, value: Node, pod: Validation) -> None:
    found = as_text(value)
    if operator == "Exists":
        if found:
            message = f"`operator: Exists` cannot have a `value`, got `{found}`; delete it"
            pod.report(_TOLERATION_RULE, message, value)
    elif not is_label_value(found):
        pod.report(_TOLERATION_RULE, f"`{found}` is not a valid taint value; {LABEL_VALUE}", value)


_GATE_RULE = "invalid-gate"
_validate_gate_name = qualified_name(_GATE_RULE, "gate name")
_SCHEDULING_GATE: ValidatorTable = {"name": _validate_gate_name}


def validate_scheduling_gates(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    """Validate the gates that delay scheduling; the pod cannot have a node already."""
    names: set[str] = set()
    for gate in iter_mappings(value):
        validate_fields(gate, _SCHEDULING_GATE, pod)
        require_fields("a scheduling gate", gate, ("name",), key, pod)
        name = as_text(gate.get("name"))
        if name and name in names:
            pod.report(_GATE_RULE, f"two scheduling gates are named `{name}`; delete one of them", gate["name"])
        names.add(name)
    if not is_empty(value) and (node_name := as_text(pod.spec.get("nodeName"))):
        message = (
            f"`nodeName` is `{node_name}`, but a pod with `schedulingGates` cannot have a node; delete one of them"
        )
        pod.report(_GATE_RULE, message, pod.spec["nodeName"])


validate_readiness_gates = each(mapping({"conditionType": _validate_gate_name}, "conditionType"))
