"""Misspelled kinds."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest
from jobgen.model.finding import FixStep


@rule("job", WARNING)
def misspelled_kind(manifest: Manifest) -> Iterator[Violation]:
    """A kind name that appears in documentation but that no operator serves.

    TensorStack's get-started page uses `TensorFlowJob`, but its reference and its examples know only
    `TensorFlowTrainingJob`. Unless the cluster defines a kind of that name, the API server rejects the object.

    Use the name of the kind that the operator serves.
    """
    kind = manifest.kind
    if kind and manifest.kind_name in kind.aliases:
        node = manifest.object["kind"]
        message = f"no operator serves the kind `{manifest.kind_name}`; use `{kind.name}`"
        yield Violation(node, message, fix_steps=(FixStep("set", node, kind.name),), safe=False)
