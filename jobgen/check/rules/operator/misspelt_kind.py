"""A kind by another name."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest
from jobgen.model.finding import FixStep


@rule("job", WARNING)
def misspelt_kind(manifest: Manifest) -> Iterator[Violation]:
    """A kind by a name that documentation uses, and no operator.

    TensorStack's get-started page writes `TensorFlowJob`; its reference and its examples know `TensorFlowTrainingJob`
    alone. Unless your cluster has its own kind of that name, the API server refuses the object.
    """
    kind = manifest.kind
    if kind and manifest.kind_name in kind.aliases:
        node = manifest.object["kind"]
        message = f"no operator serves `{manifest.kind_name}`; the kind is `{kind.name}`"
        yield Violation(node, message, fix_steps=(FixStep("set", node, kind.name),), safe=False)
