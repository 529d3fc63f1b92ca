"""Initializers of training runtimes."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest


@rule("job", WARNING, kinds=("TrainJob",))
def missing_initializer(manifest: Manifest) -> Iterator[Violation]:
    """A TrainJob with a dataset or model initializer that its runtime does not have.

    The webhook rejects `initializer.dataset` or `initializer.model` if the runtime has no job `dataset-initializer` or
    `model-initializer`. Of the runtimes shipped with Trainer, only those of torchtune have them.

    Use a runtime with the initializer, or remove it from the job.
    """
    requested = as_mapping(manifest.spec.get("initializer"))
    name = as_text(get_path(manifest.spec, "runtimeRef", "name"))
    own = as_text(get_path(manifest.spec, "runtimeRef", "kind")) == "TrainingRuntime"
    runtime = manifest.kind.requirements.runtimes.get(name) if requested and manifest.kind and not own else None
    if runtime is None or runtime.initializes:
        return
    for key in requested:
        if key in ("dataset", "model") and isinstance(requested[key], dict):
            yield Violation(
                key,
                f"runtime `{name}` has no `{key}-initializer` job, unless your cluster adds one; use another runtime",
            )
