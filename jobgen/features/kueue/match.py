"""Tests if pods match flavors, nodes and namespaces: taints, node selectors, affinity and label selectors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from jobgen.features.kueue.objects import Flavor, as_list, as_mapping
from jobgen.features.kueue.workloads import PodSet
from jobgen.k8s.nodes import get_path


def find_node_mismatch(flavor: Flavor, pod_set: PodSet) -> str:
    """Return why pods cannot run on the nodes of a flavor, in the words of Kueue; empty if they can."""
    taint = next(list_untolerated_taints(flavor, pod_set.spec), None) if flavor.taints else None
    if taint is not None:
        shown = f"{{{taint.get('key', '')} {taint.get('value', '')} {taint.get('effect', '')} <nil>}}"
        return f"untolerated taint {shown} in flavor {flavor.name}"
    if not matches_affinity(flavor.labels, pod_set.spec):
        return f"flavor {flavor.name} doesn't match node affinity"
    return ""


def find_topology_mismatch(
    flavor: Flavor, pod_set: PodSet, covered: Collection[str], levels: Collection[str] | None
) -> str:
    """Return why pods cannot be placed with a flavor, in the words of Kueue; empty if they can.

    `covered` are the resources of its group, `levels` those of its topology, None if there is no such topology.
    """
    request = pod_set.topology if pod_set.asks_for_placement else None
    if request is None:
        return f'Flavor "{flavor.name}" supports only TopologyAwareScheduling' if flavor.topology else ""
    if not flavor.topology:
        # A flavor may still provide resources that only count for quota, which no pod requests.
        if (pod_set.exact or {}).keys() & set(covered):
            return f'Flavor "{flavor.name}" does not support TopologyAwareScheduling'
        return ""
    if levels is None:
        return f'Flavor "{flavor.name}" information missing in TAS cache'
    if not request.has_levels(levels):
        return f'Flavor "{flavor.name}" does not contain the requested level'
    return ""


def list_untolerated_taints(flavor: Flavor, spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the taints of a flavor that neither the pod nor the flavor tolerates."""
    tolerations = [*map(as_mapping, as_list(spec.get("tolerations"))), *flavor.tolerations]
    return (taint for taint in flavor.taints if is_blocking(taint) and not is_tolerated(taint, tolerations))


def is_blocking(taint: Mapping[str, Any]) -> bool:
    """Return True if a taint keeps pods away; one that is only preferred does not."""
    return taint.get("effect") in ("NoSchedule", "NoExecute")


def is_tolerated(taint: Mapping[str, Any], tolerations: Iterable[Mapping[str, Any]]) -> bool:
    """Return True if a toleration matches a taint."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    wanted, value = str(toleration.get("value") or ""), str(taint.get("value") or "")
    if operator in ("Lt", "Gt"):
        return _is_integer(wanted) and _is_integer(value) and _compare(int(value), operator, int(wanted))
    return operator == "Exists" or (operator == "Equal" and wanted == value)


def _compare(one: int, operator: str, other: int) -> bool:
    return one > other if operator == "Gt" else one < other


def matches_affinity(labels: Mapping[str, str], spec: Mapping[str, Any]) -> bool:
    """Return True if a pod may run on a flavor. Only keys that are labels of the flavor count."""
    if not labels or ("nodeSelector" not in spec and "affinity" not in spec):
        return True
    selector = as_mapping(spec.get("nodeSelector"))
    if any(labels[key] != value for key, value in selector.items() if key in labels):
        return False
    required = get_path(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = [as_mapping(term) for term in as_list(as_mapping(required).get("nodeSelectorTerms"))]
    if not terms:
        return True
    kept = [
        [each for each in map(as_mapping, as_list(term.get("matchExpressions"))) if str(each.get("key", "")) in labels]
        for term in terms
    ]
    return any(all(matches_expression(labels, each) for each in term) for term in kept)


def matches_expression(labels: Mapping[str, str], expression: Mapping[str, Any]) -> bool:
    """Return True if labels match an expression of a selector."""
    key, operator = str(expression.get("key", "")), expression.get("operator")
    values = list(map(str, as_list(expression.get("values"))))
    value = labels.get(key)
    match operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            if value is None or len(values) != 1 or not (_is_integer(value) and _is_integer(values[0])):
                return False
            return _compare(int(value), operator, int(values[0]))
    return False


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit()


def matches_selector(selector: Any, labels: Mapping[str, str] | None) -> bool:
    """Return True if a label selector selects labels; without one, nothing is selected.

    Labels that are not known (None) are assumed to match.
    """
    if not isinstance(selector, dict):
        return False
    if labels is None:
        return True
    matched = all(labels.get(str(key)) == value for key, value in as_mapping(selector.get("matchLabels")).items())
    expressions = map(as_mapping, as_list(selector.get("matchExpressions")))
    return matched and all(matches_expression(labels, each) for each in expressions)
