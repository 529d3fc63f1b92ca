"""Gangs smaller than their job."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_integer, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.finding import FixStep


@rule("job", WARNING, kinds=("PyTorchJob", "MPIJob", "JAXJob", "PaddleJob", "XGBoostJob"))
def min_available_too_low(manifest: Manifest) -> Iterator[Violation]:
    """A `schedulingPolicy.minAvailable` below the number of pods, although the job needs all of them.

    The scheduler starts the job as soon as that many pods fit. They hold their GPUs and wait for the others, and two
    such jobs can wait for each other forever.

    Remove `minAvailable`; the default is all pods.
    """
    least = get_path(manifest.run_policy, "schedulingPolicy", "minAvailable")
    number = as_integer(least)
    if number is None or "elasticPolicy" in manifest.spec:
        return
    total = manifest.pod_count
    if 0 < number < total:
        message = (
            f"{number} of {total} pods can start and then wait for the rest; remove `minAvailable` or set it to {total}"
        )
        fix_steps = (FixStep("remove", least, key="minAvailable"),)
        counts = tuple(each for role in manifest.roles for each in role.compared_count)
        yield Violation(least, message, counts, fix_steps=fix_steps, safe=False)
