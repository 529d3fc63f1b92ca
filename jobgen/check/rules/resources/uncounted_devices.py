"""Claims for devices that do not count in totals."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.devices import PodClaim
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import list_counted_pods
from jobgen.spec.sweeps import GPUS


@rule("manifest", WARNING)
def uncounted_devices(manifest: Manifest) -> Iterator[Violation]:
    """A claim for devices whose number is not known, in a cluster with limits for GPUs.

    A pod's `resourceClaims` count as the devices that their ResourceClaim or ResourceClaimTemplate requests. The number
    is not known if the repository does not have the claim, the template or its DeviceClass, or if it requests all
    devices of a node. Then the job can exceed `cluster.budgets`, the quota of its queue in `cluster.queues`, or the
    limit of its sweep, and nothing reports that.

    Add the object to the repository, or request a number of devices.
    """
    cluster = manifest.cluster
    if not (cluster.budgets or cluster.queues or GPUS in manifest.annotations):
        return
    seen: set[tuple[str, str]] = set()
    for pod, count in list_counted_pods(manifest):
        for claim in pod.claims.values() if count else ():
            if not claim.is_counted and claim.key[1] and claim.key not in seen:
                seen.add(claim.key)
                yield _report(claim)


def _report(claim: PodClaim) -> Violation:
    name = f"`{claim.key[1]}`"
    reason = claim.definition.uncounted if claim.definition else f"the repository has no {claim.kind} {name}"
    message = f"the devices of {name} do not count as GPUs of the job, because {reason}"
    return Violation(claim.name, f"{message}; budgets and quotas can be exceeded")
