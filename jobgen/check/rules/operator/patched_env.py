"""Variables in a patch."""

from collections.abc import Iterator, Mapping

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest, as_list, as_mapping, as_text, get_path
from jobgen.k8s.operators import describe_rejection
from jobgen.model.data import Data

_OWN = {
    "node": "trainer.env",
    "dataset-initializer": "initializer.dataset.env",
    "model-initializer": "initializer.model.env",
}


@rule("job", ERROR, kinds=("TrainJob",))
def patched_env(manifest: Manifest) -> Iterator[Violation]:
    """A patch of a TrainJob's runtime that sets variables of a container whose variables have their own place.

    The webhook refuses variables of `node`, `dataset-initializer` and `model-initializer` in a patch. Write those of
    `node` into `trainer.env`, and those of an initializer into its own `env`.
    """
    for container in _containers(manifest.spec):
        own = _OWN.get(as_text(container.get("name")))
        if own and as_list(container.get("env")):
            key = next(key for key in container if key == "env")
            yield Violation(
                key, f"{describe_rejection(manifest)}: variables of `{as_text(container['name'])}` belong in `{own}`"
            )


def _containers(spec: Mapping[str, Data]) -> Iterator[dict[str, Data]]:
    """The containers that are patched, in the shapes of all versions."""
    for patch in as_list(spec.get("runtimePatches")):
        for job in as_list(get_path(patch, "trainingRuntimeSpec", "template", "spec", "replicatedJobs")):
            yield from map(as_mapping, as_list(get_path(job, "template", "spec", "template", "spec", "containers")))
    for override in as_list(spec.get("podTemplateOverrides")):
        yield from map(as_mapping, as_list(get_path(override, "spec", "containers")))
    for override in as_list(spec.get("podSpecOverrides")):
        yield from map(as_mapping, as_list(get_path(override, "containers")))
