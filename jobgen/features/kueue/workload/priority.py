"""The priority of a job's workload.

A label names a WorkloadPriorityClass. Without it, the scheduling policy of the job or the first pod template with a
class names a PriorityClass; without that, the default PriorityClass counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from jobgen.features.kueue.objects import as_mapping, name_of
from jobgen.model.named_tuple import NamedTuple

PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"
_DEFAULT_CLASS = "default"
# Kubernetes creates these.
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
# Kinds whose scheduling policy can name a PriorityClass.
_WITH_POLICY = frozenset(("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"))


class PriorityClasses(NamedTuple):
    """The values of the classes of a cluster, by name."""

    workload: Mapping[str, int] = {}
    pod: Mapping[str, int] = _SYSTEM_CLASSES
    default: int = 0


class Priority(NamedTuple):
    """The priority of a workload, and why it has it."""

    value: int
    class_name: str = ""
    missing: str = ""
    """What does not exist, such as ``WorkloadPriorityClass `high` ``; Kueue creates no workload then."""


def read_classes(workload: Iterable[Mapping[str, Any]], pod: Iterable[Mapping[str, Any]]) -> PriorityClasses:
    """Read WorkloadPriorityClasses and PriorityClasses. Of several default classes, the lowest value counts."""
    pod_classes = [*pod]
    defaults = [_read_value(each) for each in pod_classes if each.get("globalDefault") is True]
    return PriorityClasses(
        {name_of(each): _read_value(each) for each in workload},
        {**_SYSTEM_CLASSES, **{name_of(each): _read_value(each) for each in pod_classes}},
        min(defaults, default=0),
    )


def _read_value(obj: Mapping[str, Any]) -> int:
    value = obj.get("value")
    return value if type(value) is int else 0


def find_priority(
    obj: Mapping[str, Any],
    pod_sets: Iterable[Mapping[str, Any]],
    classes: PriorityClasses,
    *,
    has_default_class: bool = False,
) -> Priority:
    """Find the priority of a job; `has_default_class` is the gate WorkloadPriorityClassDefaulting."""
    label = as_mapping(as_mapping(obj.get("metadata")).get("labels")).get(PRIORITY_LABEL)
    if not label and has_default_class and _DEFAULT_CLASS in classes.workload:
        label = _DEFAULT_CLASS
    if label:
        return _look_up(str(label), classes.workload, "WorkloadPriorityClass")
    name = _find_policy_class(obj) or next(filter(None, map(_find_pod_class, pod_sets)), "")
    return _look_up(name, classes.pod, "PriorityClass") if name else Priority(classes.default)


def _look_up(name: str, values: Mapping[str, int], kind: str) -> Priority:
    if name not in values:
        return Priority(0, name, f"{kind} `{name}`")
    return Priority(values[name], name)


def _find_policy_class(obj: Mapping[str, Any]) -> str:
    if obj.get("kind") not in _WITH_POLICY:
        return ""
    policy = as_mapping(as_mapping(as_mapping(obj.get("spec")).get("runPolicy")).get("schedulingPolicy"))
    return str(policy.get("priorityClass") or "")


def _find_pod_class(pod_set: Mapping[str, Any]) -> str:
    spec = as_mapping(as_mapping(pod_set.get("template")).get("spec"))
    return str(spec.get("priorityClassName") or "")
