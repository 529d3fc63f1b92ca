"""Selectors: by labels of pods, and by labels and fields of nodes."""

from __future__ import annotations

from jobgen.check.admission.fields import (
    PodCheck,
    Table,
    each,
    is_empty,
    mapping_of,
    mappings,
    missing,
    string,
    strings,
    unsupported,
)
from jobgen.check.admission.metadata import labels
from jobgen.check.admission.names import (
    DNS_SUBDOMAIN,
    LABEL_KEY,
    LABEL_VALUE,
    is_dns_subdomain,
    is_label_key,
    is_label_value,
)
from jobgen.model.data import Data, value_of

_RULE = "invalid-selector"
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS = (*_LABEL_OPERATORS, "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")
_ONE = range(1, 2)
_SOME = range(1, 1 << 62)
_COUNTS = {"In": _SOME, "NotIn": _SOME, "Exists": range(1), "DoesNotExist": range(1), "Gt": _ONE, "Lt": _ONE}
_WANTED = {_ONE: "one value", _SOME: "at least one value", range(1): "no values"}


def _requirement(key: str, item: Data, owner: Data, pod: PodCheck, operators: tuple[str, ...]) -> None:
    """An operator that is known, with as many values as it takes."""
    operator = string(item.get("operator"))
    values = item.get("values")
    if operator not in operators:
        if operator:
            unsupported("operator", item["operator"], operators, pod)
        else:
            missing("a selector", item, "operator", key, pod)
        return
    wanted = _ONE if operators is _FIELD_OPERATORS else _COUNTS[operator]
    count = len(values) if isinstance(values, list) else 0
    if count not in wanted:
        pod.report(_RULE, f"`{operator}` takes {_WANTED[wanted]}, and there are {count}", item.get("operator"))


def _label_key(item: dict[str, Data], around: str, pod: PodCheck) -> None:
    found = string(item.get("key"))
    if is_empty(item.get("key")):
        missing("a selector", item, "key", around, pod)
    elif found and not is_label_key(found):
        pod.report("invalid-label", f"`{found}` is not a label's key; {LABEL_KEY}", item["key"])


def _label_values(item: dict[str, Data], pod: PodCheck) -> None:
    for found, node in strings(item.get("values")):
        if not is_label_value(found):
            pod.report("invalid-label", f"`{found}` is not a label's value; {LABEL_VALUE}", node)


def _pods(key: str, item: Data, owner: Data, pod: PodCheck) -> None:
    if isinstance(item, dict):
        _requirement(key, item, owner, pod, _LABEL_OPERATORS)
        _label_key(item, key, pod)
        _label_values(item, pod)


def _nodes(key: str, item: Data, owner: Data, pod: PodCheck) -> None:
    if isinstance(item, dict):
        _requirement(key, item, owner, pod, _NODE_OPERATORS)
        _label_key(item, key, pod)


def _required_nodes(key: str, item: Data, owner: Data, pod: PodCheck) -> None:
    if isinstance(item, dict):
        _nodes(key, item, owner, pod)
        _label_values(item, pod)


def _node_fields(key: str, item: Data, owner: Data, pod: PodCheck) -> None:
    if not isinstance(item, dict):
        return
    _requirement(key, item, owner, pod, _FIELD_OPERATORS)
    field = value_of(item.get("key"))
    if field != "metadata.name":
        pod.report(_RULE, f"`{field}` is not a field to select nodes by; `metadata.name` is", item.get("key") or item)
        return
    for found, node in strings(item.get("values")):
        if not is_dns_subdomain(found):
            pod.report("invalid-object-name", f"`{found}` is not the name of a node; {DNS_SUBDOMAIN}", node)


_SELECTOR: Table = {"matchLabels": labels, "matchExpressions": each(_pods)}
label_selector = mapping_of(_SELECTOR)

required_term = mapping_of({"matchExpressions": each(_required_nodes), "matchFields": each(_node_fields)})
# Values that cannot be a label's only make a preference that nothing meets.
preferred_term = mapping_of({"matchExpressions": each(_nodes), "matchFields": each(_node_fields)})


def match_label_keys(term: dict[str, Data], pod: PodCheck) -> None:
    """Keys whose values are taken from the pod's own labels, beside a selector."""
    selector = term.get("labelSelector")
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        if is_empty(term.get(field)):
            continue
        if not isinstance(selector, dict):
            pod.report(_RULE, f"`{field}` needs a `labelSelector` beside it", term[field])
            continue
        for found, node in strings(term[field]):
            if not is_label_key(found):
                pod.report("invalid-label", f"`{found}` is not a label's key; {LABEL_KEY}", node)
    if isinstance(selector, dict) and "matchLabelKeys" in term:
        _overlaps(term, selector, pod)


def _overlaps(term: dict[str, Data], selector: dict[str, Data], pod: PodCheck) -> None:
    own = pod.metadata.get("labels")
    by_label = selector.get("matchLabels")
    others = {found for found, _ in strings(term.get("mismatchLabelKeys"))}
    selected = [*(by_label if isinstance(by_label, dict) else ())]
    selected += [string(item.get("key")) for item in mappings(selector.get("matchExpressions"))]
    wanted = list(strings(term["matchLabelKeys"]))
    # The API server adds one requirement for each key that the pod has a label of.
    selected += [found for found, _ in wanted if isinstance(own, dict) and found in own]
    for found, node in wanted:
        times = selected.count(found)
        if found in others:
            pod.report(_RULE, f"`{found}` is in both `matchLabelKeys` and `mismatchLabelKeys`", node)
        elif times > 1:
            pod.report(_RULE, f"`{found}` is in both `matchLabelKeys` and `labelSelector`", node)
