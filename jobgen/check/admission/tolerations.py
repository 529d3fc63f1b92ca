"""Tolerations."""

from __future__ import annotations

from jobgen.check.admission.fields import PodCheck, is_set, string, unsupported
from jobgen.check.admission.names import LABEL_KEY, LABEL_VALUE, is_label_key, is_label_value
from jobgen.model.data import Data

_RULE = "invalid-toleration"
# `Lt` and `Gt` need a feature gate that is off by default.
_OPERATORS = ("Exists", "Equal")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def tolerations(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """A list of tolerations."""
    if isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                _toleration(item, key, pod)


def _toleration(item: dict[str, Data], around: str, pod: PodCheck) -> None:
    key, operator, effect = string(item.get("key")), string(item.get("operator")), string(item.get("effect"))
    if key:
        if not is_label_key(key):
            pod.report(_RULE, f"`{key}` is not a taint's key; {LABEL_KEY}", item["key"])
    elif operator != "Exists":
        message = "a toleration without `key` tolerates all taints, and needs `operator: Exists`"
        pod.report(_RULE, message, item.get("operator") or item or around)
    if operator not in _OPERATORS and operator:
        unsupported("operator", item["operator"], _OPERATORS, pod)
    elif "value" in item:
        _value(operator, item["value"], pod)
    if effect and effect not in _EFFECTS:
        unsupported("effect", item["effect"], _EFFECTS, pod)
    if "tolerationSeconds" in item and effect != "NoExecute" and is_set(item["tolerationSeconds"]):
        message = f"`tolerationSeconds` needs `effect: NoExecute`, and the effect is `{effect}`"
        pod.report(_RULE, message, item.get("effect") or item["tolerationSeconds"])


def _value(operator: str, value: Data, pod: PodCheck) -> None:
    found = string(value)
    if operator == "Exists":
        if found:
            pod.report(_RULE, f"`operator: Exists` takes no `value`, and it is `{found}`", value)
    elif not is_label_value(found):
        pod.report(_RULE, f"`{found}` is not a taint's value; {LABEL_VALUE}", value)
