"""A restart policy that has no effect."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Pod, as_text
from jobgen.model.finding import FixStep


@rule("pod", WARNING, fields=("restartPolicy",))
def overwritten_restart_policy(pod: Pod) -> Iterator[Violation]:
    """A restart policy in a pod template, where the operator overwrites it with another.

    Pods get the policy of their role, or the operator's default, whatever their template says. Write `restartPolicy`
    beside `template`, and nothing inside.
    """
    kind = pod.role.manifest.kind
    said, real = as_text(pod.spec["restartPolicy"]), pod.role.restart_policy
    if kind is None or not kind.requirements.overwrites_restart_policy or not said or not real:
        return
    if said != ("Never" if real == "ExitCode" else real):
        whose = (
            "the role says"
            if as_text(pod.role.replica_spec.get("restartPolicy"))
            else "the role says nothing, which means"
        )
        node = pod.spec["restartPolicy"]
        yield Violation(
            node,
            f"`{said}` is overwritten: {whose} `{real}`",
            fix_steps=(FixStep("remove", node, key="restartPolicy"),),
        )
