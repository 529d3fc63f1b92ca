"""Priorities and their classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.kueue import get_kueue_queue
from jobgen.k8s.nodes import as_integer, as_text, get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence

if TYPE_CHECKING:
    from jobgen.check.cluster.state import ClusterState

# The classes that every cluster has.
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


@rule("pod", ERROR, fields=("priority", "preemptionPolicy"))
def priority_without_class(pod: Pod) -> Iterator[Violation]:
    """`priority` or `preemptionPolicy` in a pod without `priorityClassName`.

    The API server computes both from the class. Without one, the priority is 0 and the policy `PreemptLowerPriority`,
    unless the cluster has a default class. A pod that says otherwise is refused, so the job never starts.

    Set `priorityClassName`, and remove `priority` and `preemptionPolicy`.

    When to turn it off: with a default PriorityClass of exactly this number, the pod is accepted; write its name
    all the same, since another default would break the job.
    """
    name = as_text(pod.spec.get("priorityClassName"))
    # Others may complete a template, but not that of a runtime here; no pods are created from a PodTemplate.
    is_completed = pod.part == "patch" or (pod.partial and pod.manifest.group != "trainer.kubeflow.org")
    if is_completed or pod.manifest.kind_name == "PodTemplate" or (name and name not in _SYSTEM_CLASSES):
        return
    # Volcano gives the class of the job to its pods.
    if pod.manifest.group == "batch.volcano.sh" and as_text(pod.manifest.spec.get("priorityClassName")):
        return
    # A team that lists its classes can have no others.
    if pod.manifest.team is not None and "priorityClasses" in pod.manifest.team.allowed:
        return
    known = _SYSTEM_CLASSES.get(name, 0)
    priority = as_integer(pod.spec.get("priority"))
    if priority is not None and priority != known:
        message = Sentence("`priority: {}` without a class is refused; set `priorityClassName` instead", priority)
        if name:
            message = Sentence(
                "`priority: {}` is refused, because the class `{}` has {}; remove it", priority, name, known
            )
        yield Violation(At(pod.spec, "priority"), message)
    if as_text(pod.spec.get("preemptionPolicy")) == "Never":
        message = Sentence(
            "`preemptionPolicy: Never` without a class is refused; set the `priorityClassName` of a class with it"
        )
        if name:
            message = Sentence("`preemptionPolicy: Never` is refused, because the class `{}` preempts; remove it", name)
        yield Violation(At(pod.spec, "preemptionPolicy"), message)


_CLASS = "priorityClassName"
_PREEMPTS = "PreemptLowerPriority"


@rule("cluster", ERROR)
def priority_differs_from_class(manifest: Manifest, state: ClusterState) -> Iterator[Violation]:
    """`preemptionPolicy` or `priority` of a pod that differs from its PriorityClass.

    The API server takes both from the class, and refuses a pod that says something else. The job is accepted, but none
    of its pods is ever created. The rule applies if the PriorityClass is known.

    Remove the field: the pod has what its class says.

    When to turn it off: the Priority admission plugin is part of each API server, so the refusal is certain if the
    class is as in the files; export the class again if it changed.
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
            message = Sentence(
                "`{}: {}` differs from PriorityClass `{}`, which has `{}`, so every pod", field, given, name, wanted
            )
            related = ((find_at(found, "value"), f"PriorityClass `{name}`"),)
            yield Violation(At(pod.spec, field), Sentence("{} is refused; remove it", message), related)


@rule("job", WARNING)
def uneven_priority(manifest: Manifest) -> Iterator[Violation]:
    """A priority class on some roles of a job but not on others, or only on the PodGroup of the job.

    When a pod without the priority is evicted, the other pods also lose their work. `schedulingPolicy.priorityClass` is
    the priority of the PodGroup, which decides about the order of jobs; the pods have the default priority and are
    preempted by others.

    Set the same priority class in every role, as `priorityClassName` of the pods.

    When to turn it off: a role that can be evicted without harm, such as an evaluator, can have a lower class:
    suppress it on that role and say why its loss is cheap.
    """
    group = as_text(get_path(manifest.run_policy, "schedulingPolicy", "priorityClass"))
    if group and _ignores_group(manifest):
        message = Sentence(
            "`{}` is the priority of the PodGroup only: the pods have the default priority and can", group
        )
        advice = Sentence("also set `priorityClassName: {}` in every role", group)
        place = find_at(manifest.run_policy, "schedulingPolicy", "priorityClass")
        yield Violation(place, Sentence("{} be preempted; {}", message, advice))
        return
    classes = [(role, as_text(role.pod.spec.get(_CLASS))) for role in manifest.roles if not role.pod.partial]
    written = [(role, name) for role, name in classes if name]
    if not written:
        return
    for role, name in classes:
        if not name and role.count:
            other, given = written[0]
            message = Sentence("`{}` has no priority class, but another role has `{}`", role.replica_type, given)
            related = ((At(other.pod.spec, _CLASS), "the priority of the other role"),)
            yield Violation(role.place, Sentence("{}; set it in every role", message), related)


def _ignores_group(manifest: Manifest) -> bool:
    """Return True if nothing reads the priority of the PodGroup, and no pod has one."""
    pods = [role.pod for role in manifest.roles if role.count]
    # Kueue reads it as the priority of the job in its queue.
    is_read = not pods or get_kueue_queue(manifest) is not None
    return not is_read and not any(as_text(pod.spec.get("priorityClassName")) for pod in pods)
