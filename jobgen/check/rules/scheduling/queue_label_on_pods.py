"""Queue labels on pods."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import QUEUE_LABEL, get_kueue_queue, is_managed_by_kueue
from jobgen.k8s.nodes import as_mapping
from jobgen.k8s.objects import Pod
from jobgen.model.finding import FixStep


@rule("pod", WARNING)
def queue_label_on_pods(pod: Pod) -> Iterator[Violation]:
    """The label `kueue.x-k8s.io/queue-name` on a pod template.

    Kueue reads the label of the job and ignores that of its pods. If the job has none, it is not queued as a whole:
    where Kueue also manages pods, it admits each pod separately, so a job can get some of its workers and wait forever
    for the others.

    Set the label only in the `metadata` of the job; for a CronJob, in that of its `jobTemplate`.
    """
    manifest = pod.manifest
    if manifest.kind is None and not is_managed_by_kueue(manifest) and manifest.kind_name != "CronJob":
        # A pod or a Deployment is no job whose pods have to start together.
        return
    labels = as_mapping(pod.metadata.get("labels"))
    for key in labels if QUEUE_LABEL in labels else ():
        if key == QUEUE_LABEL:
            effect, remedy, is_redundant = _describe(pod)
            fix_steps = (FixStep("remove", key),) if is_redundant else ()
            yield Violation(key, f"{effect}; {remedy}", fix_steps=fix_steps, safe=False)


def _describe(pod: Pod) -> tuple[str, str, bool]:
    """Return what Kueue does with the label, what to write instead, and whether the label can just be removed."""
    manifest = pod.manifest
    kind = manifest.kind
    separately = f"label `{QUEUE_LABEL}` on pods does not queue the job; at most, Kueue admits each pod separately"
    if kind is not None and kind.completed_by:
        return separately, f"set it in the `metadata` of each {kind.completed_by}", False
    if kind is None and manifest.kind_name == "CronJob":
        return separately, "move it to the labels of `jobTemplate`", False
    if not is_managed_by_kueue(manifest):
        return separately, f"remove it, because Kueue does not manage {manifest.kind_name}", False
    if get_kueue_queue(manifest) is not None:
        return f"Kueue ignores label `{QUEUE_LABEL}` on the pods of a queued job", "remove it, the job has it", True
    return separately, "move it to the job", False
