"""Timestamps of runtime patches."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.k8s.objects import Manifest
from jobgen.model.finding import FixStep


@rule("job", WARNING, kinds=("TrainJob",))
def runtime_patch_time(manifest: Manifest) -> Iterator[Violation]:
    """A `time` in the `runtimePatches` of a TrainJob.

    Trainer's webhook sets it whenever a patch changes. The value from Git is overwritten, so Git and the cluster always
    differ.

    Remove it.
    """
    for patch in as_list(manifest.spec.get("runtimePatches")):
        for key in as_mapping(patch):
            if key == "time":
                message = "Trainer sets the `time` of a patch itself; remove it"
                yield Violation(key, message, fix_steps=(FixStep("remove", key),))
