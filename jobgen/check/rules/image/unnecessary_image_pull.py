"""Pull policy of images pinned by digest."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container
from jobgen.model.finding import FixStep


@rule("container", INFO, fields=("imagePullPolicy",))
def unnecessary_image_pull(container: Container) -> Iterator[Violation]:
    """`imagePullPolicy: Always` on an image pinned by digest.

    A digest always refers to the same image, so contacting the registry at every start only adds a way to fail.

    Use `IfNotPresent`, or remove the policy.
    """
    if as_text(container.data["imagePullPolicy"]) == "Always" and "@sha256:" in as_text(container.data.get("image")):
        message = "pulling always is unnecessary for an image pinned by digest; use `IfNotPresent`"
        node = container.data["imagePullPolicy"]
        yield Violation(node, message, fix_steps=(FixStep("set", node, "IfNotPresent"),), safe=False)
