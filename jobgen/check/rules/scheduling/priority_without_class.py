"""Priorities without a class."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_integer, as_text
from jobgen.k8s.objects import Pod

# The highest value of a class that users can create; the classes of the system are never the default.
_HIGHEST = 1_000_000_000


@rule("pod", WARNING, fields=("priority", "preemptionPolicy"))
def priority_without_class(pod: Pod) -> Iterator[Violation]:
    """`priority` or `preemptionPolicy: Never` in a pod without `priorityClassName`.

    The API server takes both from the class. Without one, a pod has the priority of the default class, or 0, and
    preempts others. A pod with anything else is refused, so the job never starts. It is an error if no class can have
    the number.

    Set `priorityClassName`, and remove the field.
    """
    # Volcano gives the class of the job to its pods; other objects may complete the template of a runtime.
    if pod.partial or as_text(pod.spec.get("priorityClassName")):
        return
    if pod.manifest.group == "batch.volcano.sh" and as_text(pod.manifest.spec.get("priorityClassName")):
        return
    # A team that lists its classes can have no others.
    if pod.manifest.team is not None and "priorityClasses" in pod.manifest.team.allowed:
        return
    policy, node = pod.spec.get("preemptionPolicy"), pod.spec.get("priority")
    if as_text(policy) == "Never":
        message = "`preemptionPolicy: Never` without a class is refused unless the default class has this policy"
        yield Violation(policy, f"{message}; set a `priorityClassName` with this policy instead")
    priority = as_integer(node)
    if not priority:
        return
    message = f"`priority: {priority}` without a class is refused unless the default class has this value"
    if priority > _HIGHEST:
        message = f"`priority: {priority}` without a class is refused"
    yield Violation(
        node,
        f"{message}; set `priorityClassName` instead",
        severity=ERROR if priority > _HIGHEST else WARNING,
    )
