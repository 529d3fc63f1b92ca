"""A queue named by the pods rather than by their job."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import QUEUE_LABEL, get_kueue_queue
from jobgen.k8s.objects import Role, as_mapping
from jobgen.model.finding import FixStep


@rule("role", WARNING)
def queue_label_on_pods(role: Role) -> Iterator[Violation]:
    """The label `kueue.x-k8s.io/queue-name` on a pod template.

    Kueue then admits each pod for itself, beside the job or in its place: a job may get some of its workers and wait
    for the others for ever, and its GPUs may count twice. The label belongs into the `metadata` of the job alone.
    """
    labels = as_mapping(role.pod.metadata.get("labels"))
    for key in labels if QUEUE_LABEL in labels else ():
        if key == QUEUE_LABEL:
            also = get_kueue_queue(role.manifest) is not None
            what = "take it off the pods: the job has it" if also else "put it on the job"
            message = f"`{key}` on pods makes Kueue admit them one by one; {what}"
            yield Violation(key, message, fix_steps=(FixStep("remove", key),) if also else (), safe=False)
