"""Validate PriorityClasses."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, is_set, report_missing, validate_enum
from jobgen.k8s.nodes import as_integer, as_text
from jobgen.model.data import Node, value_of

_SYSTEM_PREFIX = "system-"
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_MAX_VALUE = 1_000_000_000
_validate_policy = validate_enum("PreemptLowerPriority", "Never")


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the name and the value, and when pods of the class preempt others."""
    field = "name" if as_text(run.metadata.get("name")) else "generateName"
    name = as_text(run.metadata.get(field))
    if name.startswith(_SYSTEM_PREFIX):
        _validate_system_class(name, obj, run.metadata[field], run)
    elif (as_integer(obj.get("value")) or 0) > _MAX_VALUE:
        message = f"`value` must be at most {_MAX_VALUE}, got `{value_of(obj['value'])}`"
        run.report("out-of-range", message, obj["value"])
    if not is_set(obj.get("preemptionPolicy")):
        return
    if value_of(obj["preemptionPolicy"]) == "":
        report_missing("a PriorityClass", obj, "preemptionPolicy", obj, run)
    else:
        _validate_policy("preemptionPolicy", obj["preemptionPolicy"], obj, run)


def _validate_system_class(name: str, obj: Mapping[str, Node], node: Node, run: Validation) -> None:
    expected = _SYSTEM_CLASSES.get(name)
    if expected is None:
        message = f"`{name}` begins with `{_SYSTEM_PREFIX}`, which is reserved for Kubernetes; use another name"
        run.report("invalid-name", message, node)
    elif (as_integer(obj.get("value")) or 0) != expected:
        message = f"`value` of `{name}` must be {expected}, got `{value_of(obj.get('value'))}`"
        run.report("invalid-value", message, obj.get("value") or node)
    elif value_of(obj.get("globalDefault")) is True:
        run.report("invalid-value", f"`globalDefault` of `{name}` must be false; delete it", obj["globalDefault"])
