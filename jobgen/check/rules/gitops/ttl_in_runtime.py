"""A runtime whose JobSets delete themselves."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest, as_list, as_mapping, get_path
from jobgen.model.finding import FixStep

_FIELD = "ttlSecondsAfterFinished"


@rule("manifest", WARNING, kinds=("TrainingRuntime", "ClusterTrainingRuntime"))
def ttl_in_runtime(manifest: Manifest) -> Iterator[Violation]:
    """A `ttlSecondsAfterFinished` in the JobSet or the Jobs of a training runtime.

    It deletes what the TrainJob has made and not the TrainJob, whose controller may make it anew: with Trainer 2.1
    every finished job runs again, with others a failed one can. Leave it out, and delete TrainJobs instead.
    """
    jobset = as_mapping(get_path(manifest.spec, "template", "spec"))
    jobs = [as_mapping(get_path(job, "template", "spec")) for job in as_list(jobset.get("replicatedJobs"))]
    for holder in (jobset, *jobs):
        for key in holder:
            if key == _FIELD:
                message = "what a TrainJob has made is deleted, and may be made and run again; leave it out"
                yield Violation(key, message, fix_steps=(FixStep("remove", key),), safe=False)
