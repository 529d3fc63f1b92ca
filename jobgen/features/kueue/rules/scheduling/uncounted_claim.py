"""Claims for devices that Kueue does not count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import get_kueue_queue
from jobgen.k8s.objects import Manifest
from jobgen.model.data import untraced

if TYPE_CHECKING:
    from jobgen.features.kueue.queue_state import QueueState


@rule("queue", WARNING)
def uncounted_claim(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """A job with a queue whose claims for devices Kueue cannot count.

    Before 0.18, Kueue ignores the `resourceClaims` of pods by default. The job is admitted as if it used no devices, so
    a team can use more of them than its quota. Since 0.18, Kueue does not admit a job with a claim that it cannot
    count, such as one for a DeviceClass that `deviceClassMappings` does not have. The rule applies if the version of
    Kueue is declared.

    Update Kueue to 0.18 or later, declare `deviceClassMappings`, and give the resource a quota. With Kueue 0.14 to
    0.17, also turn on the feature gate `DynamicResourceAllocation`.
    """
    from jobgen.features.kueue.cluster_objects import CHARGED, IGNORED, treat_claims

    configuration = queues.known.configuration
    if not queues.is_declared or get_kueue_queue(manifest) is None:
        return
    seen: set[tuple[str, str]] = set()
    if treat_claims(configuration.gates) == CHARGED:
        yield from _check_counted(manifest, queues)
    if treat_claims(configuration.gates) != IGNORED:
        return
    for claim in (claim for pod in manifest.pods for claim in pod.claims.values()):
        # Channels between GPUs are no devices of a quota.
        is_empty = (
            claim.definition is not None and claim.is_counted and not any(claim.definition.list_devices().values())
        )
        if claim.key in seen or not claim.key[1] or is_empty:
            continue
        seen.add(claim.key)
        version = ".".join(map(str, configuration.version))
        message = (
            f"Kueue {version} does not count the devices of the claim `{claim.key[1]}`, so the job uses them without"
        )
        change = "update Kueue to 0.18 or later, and declare `deviceClassMappings` for the device class"
        yield Violation(claim.name, f"{message} quota; {change}", evidence=(claim.key[1],))


def _check_counted(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """Check claims that Kueue charges as resources."""
    from jobgen.features.kueue.claims import charge_claims, read_claim_facts
    from jobgen.features.kueue.objects import find_namespace

    facts = read_claim_facts(queues.known)
    for pod in manifest.pods:
        claims = [claim for claim in pod.claims.values() if claim.definition is not None]
        spec, namespace = untraced(dict(pod.spec)), find_namespace(untraced(dict(manifest.object)))
        reason = charge_claims(spec, namespace, facts) if claims else {}
        if isinstance(reason, str):
            message = f"the job is never admitted: {reason}; declare `deviceClassMappings` of Kueue in `cluster.kueue`"
            yield Violation(claims[0].name, f"{message}, or change the claim", evidence=())
            return
