"""Validate ResourceQuotas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobgen.check.admission.fields import (
    Validation,
    iter_items,
    iter_texts,
    join_names,
    report_unsupported,
    require_fields,
)
from jobgen.check.validation.core._resource_names import is_quota_resource, validate_amount, validate_quota_resource
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.releases import Release
from jobgen.model.data import Node

_PODS = frozenset(("pods",))
_COMPUTE = frozenset(
    ("pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"),
)
_CLAIMS = frozenset(("persistentvolumeclaims", "requests.storage"))
_RESOURCES_OF_SCOPE = {
    "BestEffort": _PODS,
    "NotBestEffort": _COMPUTE,
    "Terminating": _COMPUTE,
    "NotTerminating": _COMPUTE,
    "CrossNamespacePodAffinity": _COMPUTE,
    "PriorityClass": _COMPUTE,
    "VolumeAttributesClass": _CLAIMS,
}
_CLASS_SCOPES = ("PriorityClass", "VolumeAttributesClass")
_VOLUME_CLASSES_SINCE: Release = (1, 33)
_OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the limits and the scopes; the status is not kept."""
    hard = as_mapping(run.spec.get("hard"))
    for name, value in hard.items():
        validate_quota_resource(name, hard, run)
        validate_amount(name, value, hard, run)
    scopes = list(iter_texts(run.spec.get("scopes")))
    for scope, node in scopes:
        _validate_scope(scope, node, hard, run)
    _validate_opposites(scopes, run)
    selected: list[tuple[str, Node]] = []
    for item, node in iter_items("matchExpressions", get_path(run.spec, "scopeSelector", "matchExpressions")):
        require_fields("a scope", item, ("scopeName", "operator"), node, run)
        scope = as_text(item.get("scopeName"))
        if scope:
            selected.append((scope, item["scopeName"]))
            _validate_scope(scope, item["scopeName"], hard, run)
        if as_text(item.get("operator")):
            _validate_operator(scope, item, run)
    _validate_opposites(selected, run)


def _validate_scope(scope: str, node: Node, hard: Iterable[str], run: Validation) -> None:
    """Validate a scope, and that it applies to all limited resources of Kubernetes itself."""
    known = _RESOURCES_OF_SCOPE.keys() - (_CLASS_SCOPES[1:] if run.release < _VOLUME_CLASSES_SINCE else ())
    if scope not in known:
        report_unsupported("scope", node, tuple(name for name in _RESOURCES_OF_SCOPE if name in known), run)
        return
    valid = _RESOURCES_OF_SCOPE[scope]
    others = [name for name in hard if is_quota_resource(name) and name not in valid]
    if others:
        message = f"the scope `{scope}` does not apply to {join_names(others, 'and')}; write another quota for it"
        run.report("invalid-value", message, node)


def _validate_operator(scope: str, item: Mapping[str, Node], run: Validation) -> None:
    place, values = item["operator"], as_list(item.get("values"))
    operator = as_text(place)
    if operator not in _OPERATORS:
        report_unsupported("operator", place, _OPERATORS, run)
    elif scope in _RESOURCES_OF_SCOPE and scope not in _CLASS_SCOPES and operator != "Exists":
        run.report("invalid-value", f"the scope `{scope}` requires `operator: Exists`, got `{operator}`", place)
    elif operator in ("In", "NotIn") and not values:
        run.report("invalid-selector", f"`{operator}` requires at least one value; add it to `values`", place)
    elif operator in ("Exists", "DoesNotExist") and values:
        run.report("invalid-selector", f"`{operator}` cannot have values; delete `values`", item["values"])


def _validate_opposites(scopes: list[tuple[str, Node]], run: Validation) -> None:
    nodes = dict(scopes)
    for first, second in _OPPOSITES:
        if first in nodes and second in nodes:
            message = f"the scopes `{first}` and `{second}` exclude each other; delete one of them"
            run.report("invalid-value", message, nodes[second])
