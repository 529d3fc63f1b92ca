"""Elastic jobs without workers."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import is_operator_since


@rule("job", ERROR, kinds=("PyTorchJob",))
def elastic_without_worker(manifest: Manifest) -> Iterator[Violation]:
    """A PyTorchJob with an `elasticPolicy` but without Workers.

    Only Workers are scaled. Since 1.9 the webhook rejects such a job; before that, the operator could fail on it, which
    is a warning.

    Add a Worker, or remove the `elasticPolicy`.
    """
    if (
        "elasticPolicy" not in manifest.spec
        or manifest.find_role("worker")
        or not isinstance(manifest.spec["elasticPolicy"], dict)
    ):
        return
    key = next(key for key in manifest.spec if key == "elasticPolicy")
    is_rejected = is_operator_since(manifest, "1.9.0")
    effect = "the operator's webhook rejects the job" if is_rejected else "the operator can fail on it"
    message = f"`elasticPolicy` requires a `Worker`, but the job has none; {effect}"
    yield Violation(key, message, severity=None if is_rejected else WARNING)
