"""Scheduling gates that stay."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import get_kueue_queue
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.k8s.objects import Pod
from jobgen.model.suggest import find_key

# Domains of controllers that remove their own gates.
_REMOVED = ("kueue.x-k8s.io/", "cloud.google.com/", "gke.io/", "networking.gke.io/", "grove.io/", "scheduling.run.ai/")


@rule("pod", WARNING, fields=("schedulingGates",))
def scheduling_gate(pod: Pod) -> Iterator[Violation]:
    """A scheduling gate in a pod template.

    The scheduler ignores a pod until all its gates are removed. Kueue removes only its own: a job with another gate is
    admitted and holds its quota, but its pods stay `SchedulingGated`. Gates of Kueue and of other known controllers are
    not reported.

    Remove the gate, or run the controller that removes it, and disable the rule for the job.
    """
    gates = [as_text(as_mapping(each).get("name")) for each in as_list(pod.spec["schedulingGates"])]
    own = [name for name in gates if name and not name.startswith(_REMOVED)]
    if not own or pod.partial:
        return
    queued = get_kueue_queue(pod.manifest) is not None
    effect = (
        "holds its quota after Kueue has admitted it, but its pods are never scheduled" if queued else "never starts"
    )
    message = f"until a controller removes the scheduling gate `{own[0]}`, the job {effect}; remove the gate"
    yield Violation(find_key(pod.spec, "schedulingGates"), message, evidence=(own[0],))
