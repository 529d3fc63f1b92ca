"""TTL of the objects of a training runtime."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.finding import FixStep

_FIELD = "ttlSecondsAfterFinished"


@rule("manifest", WARNING, kinds=("TrainingRuntime", "ClusterTrainingRuntime"))
def ttl_in_runtime(manifest: Manifest) -> Iterator[Violation]:
    """A `ttlSecondsAfterFinished` in the JobSet or the Jobs of a training runtime.

    It deletes the objects that the TrainJob created, but not the TrainJob, whose controller can create them again. With
    Trainer 2.1 every finished job runs again; with other versions a failed one can.

    Remove it, and delete TrainJobs instead.
    """
    jobset = as_mapping(get_path(manifest.spec, "template", "spec"))
    jobs = [as_mapping(get_path(job, "template", "spec")) for job in as_list(jobset.get("replicatedJobs"))]
    for holder in (jobset, *jobs):
        for key in holder:
            if key == _FIELD:
                message = f"`{key}` deletes the objects of a TrainJob, which can then run again; remove it"
                yield Violation(key, message, fix_steps=(FixStep("remove", key),), safe=False)
