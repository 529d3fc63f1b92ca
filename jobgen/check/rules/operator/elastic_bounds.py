"""Elastic bounds that cannot be kept."""

from collections.abc import Iterator, Mapping

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.objects import Manifest, as_integer, as_mapping
from jobgen.model.data import Data


@rule("job", ERROR, kinds=("PyTorchJob", "PaddleJob"))
def elastic_bounds(manifest: Manifest) -> Iterator[Violation]:
    """Elastic bounds that contradict each other, or the number of pods.

    With `minReplicas` above `maxReplicas` torchrun ends at once. With fewer pods than `minReplicas` it waits for nodes
    that nobody starts; more than `maxReplicas` wait in vain. No operator checks it. Bring the three numbers in line.
    """
    policy = as_mapping(manifest.spec.get("elasticPolicy"))
    if not policy:
        return
    least, most = as_integer(policy.get("minReplicas")), as_integer(policy.get("maxReplicas"))
    if least is not None and most is not None and least > most:
        yield Violation(policy["minReplicas"], f"`minReplicas` is {least}, more than `maxReplicas`, which is {most}")
    elif manifest.kind_name == "PyTorchJob" and not policy.get("metrics"):
        yield from _pods(manifest, policy, least, most)


def _pods(manifest: Manifest, policy: Mapping[str, Data], least: int | None, most: int | None) -> Iterator[Violation]:
    """Without metrics nobody changes the number of pods; a bound that is missing is the other."""
    total = manifest.pod_count
    bounds = [(bound, key) for bound, key in ((least, "minReplicas"), (most, "maxReplicas")) if bound is not None]
    if not bounds:
        return
    (low, lower), (high, upper) = bounds[0], bounds[-1]
    if total < low:
        yield Violation(policy[lower], f"torchrun waits for {low} pods, and the job has {total}")
    elif total > high:
        yield Violation(policy[upper], f"torchrun takes {high} pods, and the job has {total}", severity=WARNING)
