"""A digest that is pulled always."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Fault, rule
from jobgen.k8s.objects import Container, text
from jobgen.model.data import Change


@rule("container", INFO, fields=("imagePullPolicy",))
def needless_pull(container: Container) -> Iterator[Fault]:
    """`imagePullPolicy: Always` for an image that is named by its digest.

    A digest never means another image, so asking the registry at every start only adds a way to fail. Use
    `IfNotPresent`, or leave the policy out.
    """
    if text(container.data["imagePullPolicy"]) == "Always" and "@sha256:" in text(container.data.get("image")):
        message = "a digest always means the same image; `IfNotPresent` is enough"
        node = container.data["imagePullPolicy"]
        yield Fault(node, message, mend=(Change("set", node, "IfNotPresent"),), safe=False)
