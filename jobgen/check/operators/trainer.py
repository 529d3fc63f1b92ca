"""What the webhooks of Kubeflow Trainer reject in runtimes: the replicated Jobs that TrainJobs fill in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.operators.checks import REJECTED, Check, Checks, Violations
from jobgen.check.rules import Violation
from jobgen.k8s.nodes import as_integer, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Plain
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence

OPERATOR = "trainer"
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
# The container of a step that TrainJobs fill in.
_CONTAINERS = {
    "trainer": "node",
    "dataset-initializer": "dataset-initializer",
    "model-initializer": "model-initializer",
}


def list_steps(runtime: Mapping[str, Plain]) -> Iterator[tuple[Mapping[str, Plain], str]]:
    """Yield the replicated Jobs of a runtime, each with the step that its label names."""
    for job in iter_mappings(get_path(runtime, "spec", "template", "spec", "replicatedJobs")):
        yield job, as_text(get_path(job, "template", "metadata", "labels", STEP))


def _check_replicas(manifest: Manifest) -> Violations:
    for job, step in list_steps(manifest.object):
        if step in _CONTAINERS and as_integer(job.get("replicas")) not in (None, 1):
            message = Sentence(
                "`replicas` of the replicated Job for `{}` must be 1; set the number of nodes in `numNodes`", step
            )
            yield Violation(At(job, "replicas"), message)


def _check_containers(manifest: Manifest) -> Violations:
    for job, step in list_steps(manifest.object):
        pod = get_path(job, "template", "spec", "template", "spec")
        names = [as_text(each.get("name")) for each in iter_mappings(get_path(pod, "containers"))]
        if step in _CONTAINERS and names and _CONTAINERS[step] not in names:
            message = Sentence(
                "the replicated Job for `{}` requires a container `{}`; rename one", step, _CONTAINERS[step]
            )
            yield Violation(find_at(pod, "containers", is_key=True), message)


_RUNTIME = (Check(REJECTED, _check_replicas), Check(REJECTED, _check_containers, since="2.1"))
CHECKS: Checks = {"ClusterTrainingRuntime": _RUNTIME, "TrainingRuntime": _RUNTIME}
