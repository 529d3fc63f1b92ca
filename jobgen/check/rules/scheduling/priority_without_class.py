"""Priorities without a class."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.nodes import as_integer, as_text
from jobgen.k8s.objects import Pod

# The classes that every cluster has.
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


@rule("pod", ERROR, fields=("priority", "preemptionPolicy"))
def priority_without_class(pod: Pod) -> Iterator[Violation]:
    """`priority` or `preemptionPolicy` in a pod without `priorityClassName`.

    The API server computes both from the class. Without one, the priority is 0 and the policy `PreemptLowerPriority`,
    unless the cluster has a default class. A pod that says otherwise is refused, so the job never starts.

    Set `priorityClassName`, and remove `priority` and `preemptionPolicy`.
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
        message = f"`priority: {priority}` without a class is refused; set `priorityClassName` instead"
        if name:
            message = f"`priority: {priority}` is refused, because the class `{name}` has {known}; remove it"
        yield Violation(pod.spec["priority"], message)
    if as_text(pod.spec.get("preemptionPolicy")) == "Never":
        message = "`preemptionPolicy: Never` without a class is refused; set the `priorityClassName` of a class with it"
        if name:
            message = f"`preemptionPolicy: Never` is refused, because the class `{name}` preempts; remove it"
        yield Violation(pod.spec["preemptionPolicy"], message)
