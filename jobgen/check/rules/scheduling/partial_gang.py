"""A gang that starts without some of its members."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest, as_integer, get_path
from jobgen.model.finding import FixStep


@rule("job", WARNING, kinds=("PyTorchJob", "MPIJob", "JAXJob", "PaddleJob", "XGBoostJob"))
def partial_gang(manifest: Manifest) -> Iterator[Violation]:
    """A `schedulingPolicy.minAvailable` below the number of pods, though the job needs them all.

    The scheduler starts the job as soon as so many pods fit: they hold their GPUs and wait for the others, and two
    such jobs can wait for each other for ever. Leave `minAvailable` out: it is then all the pods.
    """
    least = get_path(manifest.run_policy, "schedulingPolicy", "minAvailable")
    number = as_integer(least)
    if number is None or "elasticPolicy" in manifest.spec:
        return
    total = manifest.pod_count
    if 0 < number < total:
        message = f"{number} of {total} pods may start and wait for the rest; leave it out, or say {total}"
        yield Violation(least, message, fix_steps=(FixStep("remove", least, key="minAvailable"),), safe=False)
