"""Where a pod may run: affinity, spreading, gates."""

from __future__ import annotations

from jobgen.check.admission.fields import (
    PodCheck,
    Table,
    both,
    each,
    is_empty,
    is_set,
    judge,
    mapping_of,
    mappings,
    missing,
    number,
    require,
    string,
    text,
    word,
)
from jobgen.check.admission.names import DNS_LABEL, LABEL_KEY, is_dns_label, is_label_key
from jobgen.check.admission.selectors import label_selector, match_label_keys, preferred_term, required_term
from jobgen.model.data import Data, value_of

_RULE = "invalid-topology-spread"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

_weight = number(1, 100)
_positive = number(1)
_namespace = text("invalid-object-name", "the name of a namespace", is_dns_label, DNS_LABEL, empty=True)
_topology_key = text("invalid-label", "a label's key", is_label_key, LABEL_KEY)
_inclusion = word("Honor", "Ignore")
_gate = text("invalid-gate", "the name of a gate", is_label_key, LABEL_KEY)


def _weighed(key: str, item: Data, owner: Data, pod: PodCheck) -> None:
    """A preference has a weight."""
    if isinstance(item, dict) and not is_set(item.get("weight")):
        missing("a preference", item, "weight", key, pod)


def _pod_term(key: str, term: Data, owner: Data, pod: PodCheck) -> None:
    if isinstance(term, dict):
        judge(term, _POD_TERM, pod)
        match_label_keys(term, pod)
        require("a term of affinity", term, ("topologyKey",), key, pod)


_POD_TERM: Table = {
    "labelSelector": label_selector,
    "namespaceSelector": label_selector,
    "namespaces": each(_namespace),
    "topologyKey": _topology_key,
}
_POD_AFFINITY = mapping_of(
    {
        _REQUIRED: each(_pod_term),
        _PREFERRED: each(both(mapping_of({"weight": _weight, "podAffinityTerm": _pod_term}), _weighed)),
    }
)
_NODE_AFFINITY = mapping_of(
    {
        _REQUIRED: mapping_of({"nodeSelectorTerms": each(required_term)}, "nodeSelectorTerms"),
        _PREFERRED: each(both(mapping_of({"weight": _weight, "preference": preferred_term}), _weighed)),
    }
)
affinity = mapping_of({"nodeAffinity": _NODE_AFFINITY, "podAffinity": _POD_AFFINITY, "podAntiAffinity": _POD_AFFINITY})


def spread(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """Topology spread constraints, each for another pair of key and action."""
    pairs: set[tuple[str, str]] = set()
    for constraint in mappings(value):
        judge(constraint, _SPREAD, pod)
        require("a constraint", constraint, ("maxSkew", "topologyKey", "whenUnsatisfiable"), key, pod)
        match_label_keys(constraint, pod)
        pair = (string(constraint.get("topologyKey")), string(constraint.get("whenUnsatisfiable")))
        if all(pair) and pair in pairs:
            message = f"`{pair[0]}` is spread over with `{pair[1]}` twice; keep one of them"
            pod.report(_RULE, message, constraint["topologyKey"])
        pairs.add(pair)
        if is_set(constraint.get("minDomains")) and pair[1] != "DoNotSchedule":
            message = f"`minDomains` needs `whenUnsatisfiable: DoNotSchedule`, and it is `{pair[1]}`"
            pod.report(_RULE, message, constraint["minDomains"])


_SPREAD: Table = {
    "maxSkew": _positive,
    "minDomains": _positive,
    "whenUnsatisfiable": word("", "DoNotSchedule", "ScheduleAnyway"),
    "nodeAffinityPolicy": _inclusion,
    "nodeTaintsPolicy": _inclusion,
    "labelSelector": label_selector,
}


def scheduling_gates(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """Gates that keep a pod from being scheduled; a node chosen already makes them void."""
    names: set[str] = set()
    for gate in mappings(value):
        judge(gate, {"name": _gate}, pod)
        require("a gate", gate, ("name",), key, pod)
        name = string(gate.get("name"))
        if name and name in names:
            pod.report("invalid-gate", f"`{name}` names two gates", gate["name"])
        names.add(name)
    if not is_empty(value) and string(pod.spec.get("nodeName")):
        message = f"`nodeName` is `{value_of(pod.spec['nodeName'])}`; a pod with `schedulingGates` cannot have a node"
        pod.report("invalid-gate", message, pod.spec["nodeName"])


readiness_gates = each(mapping_of({"conditionType": _gate}, "conditionType"))
