"""A time that the webhook writes."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Fault, rule
from jobgen.k8s.objects import Manifest, items, mapping
from jobgen.model.data import Change


@rule("job", WARNING, kinds=("TrainJob",))
def runtime_patch_time(manifest: Manifest) -> Iterator[Fault]:
    """A `time` in the `runtimePatches` of a TrainJob.

    Trainer's webhook writes it whenever a patch changes; what Git says is overwritten, and the two differ for ever.
    Leave it out.
    """
    for patch in items(manifest.spec.get("runtimePatches")):
        for key in mapping(patch):
            if key == "time":
                message = "Trainer writes the time of a patch itself; leave it out"
                yield Fault(key, message, mend=(Change("remove", key),))
