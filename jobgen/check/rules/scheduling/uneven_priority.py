"""Different priorities in one job."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import get_kueue_queue
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Manifest


@rule("job", WARNING)
def uneven_priority(manifest: Manifest) -> Iterator[Violation]:
    """A priority class on some roles of a job but not on others, or only on the PodGroup of the job.

    When a pod without the priority is evicted, the other pods also lose their work. `schedulingPolicy.priorityClass` is
    the priority of the PodGroup, which decides about the order of jobs; the pods have the default priority and are
    preempted by others.

    Set the same priority class in every role, as `priorityClassName` of the pods.
    """
    group = get_path(manifest.run_policy, "schedulingPolicy", "priorityClass")
    pods = [role.pod for role in manifest.roles if role.count]
    # Kueue reads it as the priority of the job in its queue.
    is_read = not pods or get_kueue_queue(manifest) is not None
    if as_text(group) and not is_read and not any(as_text(pod.spec.get("priorityClassName")) for pod in pods):
        message = f"`{as_text(group)}` is the priority of the PodGroup only: the pods have the default priority and can"
        yield Violation(group, f"{message} be preempted; also set `priorityClassName: {as_text(group)}` in every role")
        return
    if not any("priorityClassName" in role.pod.spec for role in manifest.roles):
        return
    classes = [(role, role.pod.spec.get("priorityClassName")) for role in manifest.roles if not role.pod.partial]
    written = [name for _, name in classes if as_text(name)]
    if not written:
        return
    for role, name in classes:
        if not as_text(name) and role.count:
            message = f"`{role.replica_type}` has no priority class, but another role has `{as_text(written[0])}`"
            yield Violation(
                role.key, f"{message}; set it in every role", ((written[0], "the priority of the other role"),)
            )
