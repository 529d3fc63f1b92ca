"""A gang larger than the job."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest, as_integer, get_path
from jobgen.model.finding import FixStep


@rule("job", ERROR)
def gang_beyond_job(manifest: Manifest) -> Iterator[Violation]:
    """A `schedulingPolicy.minAvailable` above the number of pods.

    A gang scheduler starts the job when so many of its pods can run at once. It has fewer, so it waits for ever. Leave
    `minAvailable` out: it is then all the pods.
    """
    if "schedulingPolicy" not in manifest.run_policy:
        return
    least = get_path(manifest.run_policy, "schedulingPolicy", "minAvailable")
    number = as_integer(least)
    if number is not None and manifest.roles and number > manifest.pod_count:
        message = f"the job has {manifest.pod_count} pods, so {number} never run at once and it never starts"
        yield Violation(least, message, fix_steps=(FixStep("remove", least, key="minAvailable"),), safe=False)
