"""Elasticity of nobody."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import is_operator_since


@rule("job", ERROR, kinds=("PyTorchJob",))
def elastic_without_worker(manifest: Manifest) -> Iterator[Violation]:
    """A PyTorchJob with an `elasticPolicy` and without Workers.

    Only Workers come and go. From 1.9 on the webhook refuses such a job; before, the operator fell over it. Add a
    Worker, or take the `elasticPolicy` out.
    """
    if (
        "elasticPolicy" not in manifest.spec
        or manifest.find_role("worker")
        or not isinstance(manifest.spec["elasticPolicy"], dict)
    ):
        return
    key = next(key for key in manifest.spec if key == "elasticPolicy")
    refused = is_operator_since(manifest, "1.9.0")
    consequence = "the operator's webhook refuses the job" if refused else "the operator may fall over it"
    message = f"`elasticPolicy` is about `Worker`, and there is none; {consequence}"
    yield Violation(key, message, severity=None if refused else WARNING)
