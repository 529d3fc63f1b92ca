"""Environment variables in runtime patches."""

from collections.abc import Iterator, Mapping

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import describe_rejection
from jobgen.model.data import Node

_OWN = {
    "node": "trainer.env",
    "dataset-initializer": "initializer.dataset.env",
    "model-initializer": "initializer.model.env",
}


@rule("job", ERROR, kinds=("TrainJob",))
def env_in_runtime_patch(manifest: Manifest) -> Iterator[Violation]:
    """A runtime patch of a TrainJob that sets variables of a container with an `env` field of its own.

    The webhook rejects patches of the variables of `node`, `dataset-initializer` and `model-initializer`.

    Set the variables of `node` in `trainer.env`, and those of an initializer in its own `env`.
    """
    for container in _patched_containers(manifest.spec):
        own = _OWN.get(as_text(container.get("name")))
        if own and as_list(container.get("env")):
            key = next(key for key in container if key == "env")
            message = f"a patch cannot set variables of `{as_text(container['name'])}`"
            yield Violation(key, f"{message}; {describe_rejection(manifest)}; use `{own}`")


def _patched_containers(spec: Mapping[str, Node]) -> Iterator[Mapping[str, Node]]:
    """Yield the containers that are patched, in the forms of all versions."""
    for patch in as_list(spec.get("runtimePatches")):
        for job in as_list(get_path(patch, "trainingRuntimeSpec", "template", "spec", "replicatedJobs")):
            yield from map(as_mapping, as_list(get_path(job, "template", "spec", "template", "spec", "containers")))
    for override in as_list(spec.get("podTemplateOverrides")):
        yield from map(as_mapping, as_list(get_path(override, "spec", "containers")))
    for override in as_list(spec.get("podSpecOverrides")):
        yield from map(as_mapping, as_list(get_path(override, "containers")))
