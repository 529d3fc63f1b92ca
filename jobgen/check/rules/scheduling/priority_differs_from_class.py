"""Priorities of pods that differ from their class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.nodes import as_integer, as_text
from jobgen.k8s.objects import Manifest, Pod

if TYPE_CHECKING:
    from jobgen.check.cluster.state import ClusterState

_PREEMPTS = "PreemptLowerPriority"


@rule("cluster", ERROR)
def priority_differs_from_class(manifest: Manifest, state: ClusterState) -> Iterator[Violation]:
    """`preemptionPolicy` or `priority` of a pod that differs from its PriorityClass.

    The API server takes both from the class, and refuses a pod that says something else. The job is accepted, but none
    of its pods is ever created. The rule applies if the PriorityClass is known.

    Remove the field: the pod has what its class says.
    """
    if not state.priorities:
        return
    for pod in manifest.pods:
        yield from () if pod.partial else _check_pod(pod, state)


def _check_pod(pod: Pod, state: ClusterState) -> Iterator[Violation]:
    name = as_text(pod.spec.get("priorityClassName"))
    found = state.priorities.get(name)
    if found is None:
        return
    policy, value = as_text(found.get("preemptionPolicy")) or _PREEMPTS, as_integer(found.get("value")) or 0
    for field, wanted in (("preemptionPolicy", policy), ("priority", str(value))):
        node = pod.spec.get(field)
        given = as_text(node) if field == "preemptionPolicy" else str(as_integer(node))
        if node is not None and given and given != wanted:
            message = f"`{field}: {given}` differs from PriorityClass `{name}`, which has `{wanted}`, so every pod"
            related = ((found.get("value"), f"PriorityClass `{name}`"),)
            yield Violation(node, f"{message} is refused; remove it", related)
