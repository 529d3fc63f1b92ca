"""Accelerators of a team that wait in no queue."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.check.team_limits import advise, list_accelerated_pods, requires_queue
from jobgen.k8s.kueue import advise_queue
from jobgen.k8s.objects import Manifest
from jobgen.k8s.team_uses import QUEUES


@rule("manifest", ERROR)
def unqueued_accelerators(manifest: Manifest) -> Iterator[Violation]:
    """An object with accelerators and without a queue, although the file's team has queues.

    A team's file lists the queues of its jobs. Accelerators outside of queues count against no quota, so other teams
    wait for what was promised to them. Pods, Deployments, StatefulSets and all other kinds that create pods count.

    Set `queue`, or the label `kueue.x-k8s.io/queue-name`, to one of the team's queues. Where there are no queues, set
    `queues: []` for the environment in the team's file.
    """
    team = manifest.team
    if team is None or not requires_queue(team):
        return
    pods = list_accelerated_pods(manifest)
    advice = advise_queue(manifest, pods) if pods else ""
    if advice:
        message = f"the pods request accelerators without a queue; {advice}; {advise(team, QUEUES)}"
        yield Violation(manifest.metadata.get("name", manifest.object), message)
