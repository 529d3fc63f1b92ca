"""Queue labels on pods."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import QUEUE_LABEL, get_kueue_queue
from jobgen.k8s.objects import Role, as_mapping
from jobgen.model.finding import FixStep


@rule("role", WARNING)
def queue_label_on_pods(role: Role) -> Iterator[Violation]:
    """The label `kueue.x-k8s.io/queue-name` on a pod template.

    Kueue then admits each pod separately, in addition to the job or instead of it. A job may get some of its workers
    and wait forever for the others, and its GPUs may count twice.

    Set the label only in the `metadata` of the job.
    """
    labels = as_mapping(role.pod.metadata.get("labels"))
    for key in labels if QUEUE_LABEL in labels else ():
        if key == QUEUE_LABEL:
            also = get_kueue_queue(role.manifest) is not None
            remedy = "remove it, the job has it" if also else "move it to the job"
            message = f"label `{key}` on pods makes Kueue admit each pod separately; {remedy}"
            yield Violation(key, message, fix_steps=(FixStep("remove", key),) if also else (), safe=False)
