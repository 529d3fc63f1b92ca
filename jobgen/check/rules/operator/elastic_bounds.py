"""Bounds of elastic jobs."""

from collections.abc import Iterator, Mapping

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_integer, as_mapping
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node
from jobgen.model.finding import pluralize


@rule("job", ERROR, kinds=("PyTorchJob", "PaddleJob"))
def elastic_bounds(manifest: Manifest) -> Iterator[Violation]:
    """Elastic bounds that contradict each other or the number of pods.

    With `minReplicas` above `maxReplicas`, torchrun exits at once. With fewer pods than `minReplicas`, it waits for
    nodes that are never started. Pods beyond `maxReplicas` are not used, which is a warning. No operator checks this.

    Make `minReplicas`, `maxReplicas` and the number of pods consistent.
    """
    policy = as_mapping(manifest.spec.get("elasticPolicy"))
    if not policy:
        return
    least, most = as_integer(policy.get("minReplicas")), as_integer(policy.get("maxReplicas"))
    if least is not None and most is not None and least > most:
        yield Violation(
            policy["minReplicas"], f"`minReplicas` is {least}, which is above `maxReplicas` ({most}); lower it"
        )
    elif manifest.kind_name == "PyTorchJob" and not policy.get("metrics"):
        yield from _check_pods(manifest, policy, least, most)


def _check_pods(
    manifest: Manifest, policy: Mapping[str, Node], least: int | None, most: int | None
) -> Iterator[Violation]:
    """Compare the bounds with the number of pods, which is fixed without metrics; a missing bound equals the other."""
    total = manifest.pod_count
    bounds = [(bound, key) for bound, key in ((least, "minReplicas"), (most, "maxReplicas")) if bound is not None]
    if not bounds:
        return
    (low, lower), (high, upper) = bounds[0], bounds[-1]
    counts = tuple(each for role in manifest.roles for each in role.compared_count)
    if total < low:
        message = f"torchrun waits for {pluralize(low, 'pod')}, but the job has {total}; add pods or lower `{lower}`"
        yield Violation(policy[lower], message, counts)
    elif total > high:
        message = f"torchrun uses at most {pluralize(high, 'pod')}, but the job has {total}"
        message += f"; set `maxReplicas` to at least {total}"
        yield Violation(policy[upper], message, counts, severity=WARNING)
