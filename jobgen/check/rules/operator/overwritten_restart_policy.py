"""Restart policies that the operator overwrites."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Pod
from jobgen.model.finding import FixStep


@rule("pod", WARNING, fields=("restartPolicy",))
def overwritten_restart_policy(pod: Pod) -> Iterator[Violation]:
    """A restart policy in a pod template that the operator overwrites.

    Pods get the policy of their role, or the default of the operator, whatever their template says.

    Write `restartPolicy` next to `template`, not inside it.
    """
    kind, role = pod.manifest.kind, pod.role
    if role is None:
        return
    written, effective = as_text(pod.spec["restartPolicy"]), role.restart_policy
    if kind is None or not kind.requirements.overwrites_restart_policy or not written or not effective:
        return
    if written != ("Never" if effective == "ExitCode" else effective):
        is_set = as_text(role.restart_policy_node)
        source = "the policy of the role" if is_set else "the default of the role"
        node = pod.spec["restartPolicy"]
        yield Violation(
            node,
            f"`{written}` is overwritten with `{effective}`, {source}; remove it from the pod template",
            fix_steps=(FixStep("remove", node, key="restartPolicy"),),
        )
