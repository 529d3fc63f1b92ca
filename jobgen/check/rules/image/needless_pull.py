"""A digest that is pulled always."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.objects import Container, as_text
from jobgen.model.finding import FixStep


@rule("container", INFO, fields=("imagePullPolicy",))
def needless_pull(container: Container) -> Iterator[Violation]:
    """`imagePullPolicy: Always` for an image that is named by its digest.

    A digest never means another image, so asking the registry at every start only adds a way to fail. Use
    `IfNotPresent`, or leave the policy out.
    """
    if as_text(container.data["imagePullPolicy"]) == "Always" and "@sha256:" in as_text(container.data.get("image")):
        message = "a digest always means the same image; `IfNotPresent` is enough"
        node = container.data["imagePullPolicy"]
        yield Violation(node, message, fix_steps=(FixStep("set", node, "IfNotPresent"),), safe=False)
