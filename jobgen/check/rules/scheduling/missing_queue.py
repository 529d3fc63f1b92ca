"""Jobs without a queue."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.check.team_limits import list_accelerated_pods, requires_queue
from jobgen.k8s.kueue import advise_queue, can_be_queued
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import count_gpus
from jobgen.model.suggest import list_alternatives


@rule("manifest", WARNING)
def missing_queue(manifest: Manifest) -> Iterator[Violation]:
    """An object with GPUs that names no queue, in a cluster that declares queues.

    Its GPUs count against no quota: the job takes GPUs that queued jobs were promised, or it is never admitted where
    every job must be in a queue. Kueue also manages Pods, Deployments, StatefulSets, LeaderWorkerSets and RayClusters.

    Set `queue`, or the label `kueue.x-k8s.io/queue-name`. For a CronJob, set the label in its `jobTemplate`. For kinds
    that Kueue does not manage, such as a ReplicaSet, set it in the pod template, or use another kind.
    """
    queues = manifest.cluster.queues
    if not queues or (manifest.team is not None and requires_queue(manifest.team)):
        return
    pods = list_accelerated_pods(manifest)
    advice = advise_queue(manifest, pods) if pods else ""
    # KAI, Run:ai and similar schedulers use a label.
    if advice and not any("queue" in key for key in manifest.labels):
        gpus = count_gpus(manifest)
        fitting = [name for name, budget in queues.items() if budget.get("gpus", gpus) >= gpus]
        known = list_alternatives(f"`{name}`" for name in sorted(fitting or queues)[:5])
        wanted = "GPUs" if any(pod.gpus for pod in pods) else "accelerators"
        what = "job" if manifest.kind else "object"
        use = f"use queue {known}" if can_be_queued(manifest) else f"{advice} to {known}"
        message = f"the {what} requests {wanted} but names no queue; {use}"
        yield Violation(manifest.metadata.get("name", manifest.metadata.get("generateName")), message)
