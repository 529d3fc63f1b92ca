"""Gangs larger than their job."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.nodes import as_integer, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.finding import FixStep, pluralize


@rule("job", ERROR)
def min_available_too_high(manifest: Manifest) -> Iterator[Violation]:
    """A `schedulingPolicy.minAvailable` above the number of pods.

    A gang scheduler starts the job when that many of its pods can run at once. The job has fewer, so it waits forever.

    Remove `minAvailable`; the default is all pods.
    """
    if "schedulingPolicy" not in manifest.run_policy:
        return
    least = get_path(manifest.run_policy, "schedulingPolicy", "minAvailable")
    number = as_integer(least)
    if number is not None and manifest.roles and number > manifest.pod_count:
        pods = pluralize(manifest.pod_count, "pod")
        message = f"`minAvailable` is {number}, but the job has {pods}, so it never starts; remove `minAvailable`"
        fix_steps = (FixStep("remove", least, key="minAvailable"),)
        counts = tuple(each for role in manifest.roles for each in role.compared_count)
        yield Violation(least, message, counts, fix_steps=fix_steps, safe=False)
