"""The Argo CD instance label on pods."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.objects import Pod
from jobgen.model.finding import FixStep

_INSTANCE = "app.kubernetes.io/instance"


@rule("pod", INFO)
def instance_label_on_pods(pod: Pod) -> Iterator[Violation]:
    """The label `app.kubernetes.io/instance` on a pod template that Argo CD applies.

    When Argo CD tracks objects by this label, which was the default before 3.0, it considers the pods its own and can
    prune them while they train.

    Remove the label from the pods, or let Argo CD track by annotation.
    """
    # Workloads such as Deployments often select their pods by this label.
    if pod.manifest.cluster.gitops != "argocd" or pod.manifest.kind is None:
        return
    labels = pod.metadata.get("labels")
    for key in labels if isinstance(labels, dict) else ():
        if key == _INSTANCE:
            message = f"Argo CD can treat pods with the label `{key}` as its own and prune them; remove it"
            yield Violation(key, message, fix_steps=(FixStep("remove", key),), safe=False)
