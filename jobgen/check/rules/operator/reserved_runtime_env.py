"""Environment variables reserved for the runtime."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Container
from jobgen.k8s.operators import describe_rejection


@rule("container", ERROR, fields=("env",), kinds=("TrainJob",))
def reserved_runtime_env(container: Container) -> Iterator[Violation]:
    """A variable of a TrainJob that its runtime sets itself, such as `PET_NNODES`.

    The webhook rejects a job whose `trainer.env` sets a variable that the policy of the runtime sets.

    Use `numNodes` and `numProcPerNode`.
    """
    manifest = container.pod.manifest
    kind = manifest.kind
    runtime = kind.requirements.runtimes.get(as_text(get_path(manifest.spec, "runtimeRef", "name"))) if kind else None
    if kind is None or runtime is None:
        return
    reserved = kind.requirements.reserved.get(runtime.policy, ())
    for name, entry in container.env:
        if name in reserved:
            yield Violation(
                entry["name"], f"the runtime sets `{name}` itself; {describe_rejection(manifest)}; remove it"
            )
