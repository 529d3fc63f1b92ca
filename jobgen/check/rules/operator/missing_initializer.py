"""An initializer that the runtime does not have."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest, as_mapping, as_text, get_path


@rule("job", WARNING, kinds=("TrainJob",))
def missing_initializer(manifest: Manifest) -> Iterator[Violation]:
    """A TrainJob with a dataset or a model, whose runtime has no job to fetch it.

    The webhook refuses an `initializer.dataset` or `initializer.model` if the runtime has no job
    `dataset-initializer` or `model-initializer`. Of the runtimes that travel with Trainer only those of torchtune do.
    """
    asked = as_mapping(manifest.spec.get("initializer"))
    name = as_text(get_path(manifest.spec, "runtimeRef", "name"))
    own = as_text(get_path(manifest.spec, "runtimeRef", "kind")) == "TrainingRuntime"
    runtime = manifest.kind.requirements.runtimes.get(name) if asked and manifest.kind and not own else None
    if runtime is None or runtime.initializes:
        return
    for key in asked:
        if key in ("dataset", "model") and isinstance(asked[key], dict):
            yield Violation(key, f"`{name}` has no job `{key}-initializer`, unless your cluster changed it")
