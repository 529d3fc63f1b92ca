"""Scheduled jobs whose runs overlap."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import value_of
from jobgen.model.suggest import find_key

_GROUPS = ("batch", "batch.volcano.sh")


@rule("manifest", WARNING, kinds=("CronJob",))
def overlapping_runs(manifest: Manifest) -> Iterator[Violation]:
    """A CronJob with GPUs that does not say whether its runs can overlap.

    The default of `concurrencyPolicy` is `Allow`: if a run takes longer than the schedule, the next one starts
    beside it, and each of them takes as many GPUs again. A CronJob whose runs have a deadline is not reported.

    Set `concurrencyPolicy: Forbid` or `Replace`. To let runs overlap on purpose, write `Allow`.
    """
    if manifest.group not in _GROUPS or as_text(manifest.spec.get("concurrencyPolicy")):
        return
    deadline = get_path(manifest.spec, "jobTemplate", "spec", "activeDeadlineSeconds")
    devices = {name: count for pod in manifest.pods for name, count in pod.devices.items() if count}
    if not devices or value_of(deadline) is not None or value_of(manifest.spec.get("suspend")) is True:
        return
    what = "GPUs" if any(pod.gpus for pod in manifest.pods) else "devices"
    message = "`concurrencyPolicy` is not set, so concurrent runs are allowed: if a run hangs or takes longer than the"
    message += f" schedule, the next one takes as many {what} again"
    yield Violation(
        find_key(manifest.spec, "schedule") or manifest.object.get("kind"), f"{message}; set it to `Forbid`"
    )
