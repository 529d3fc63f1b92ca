"""Argo CD's own label on pods."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.objects import Role
from jobgen.model.finding import FixStep

_INSTANCE = "app.kubernetes.io/instance"


@rule("role", INFO)
def instance_label_on_pods(role: Role) -> Iterator[Violation]:
    """The label `app.kubernetes.io/instance` on a pod template, where Argo CD applies it.

    Where Argo CD finds its objects by this label, as it did by default before 3.0, it takes the pods for its own and
    may prune them while they train. Leave the label off the pods, or let Argo CD track by annotation.
    """
    if role.manifest.cluster.gitops != "argocd":
        return
    labels = role.pod.metadata.get("labels")
    for key in labels if isinstance(labels, dict) else ():
        if key == _INSTANCE:
            message = f"Argo CD may take pods with `{key}` for its own, and prune them; leave it off"
            yield Violation(key, message, fix_steps=(FixStep("remove", key),), safe=False)
