"""A name that no image can have."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.images import find_image_error
from jobgen.k8s.objects import Container, as_text


@rule("container", ERROR, fields=("image",))
def malformed_image(container: Container) -> Iterator[Violation]:
    """A name that no image can have: the pod stays in `InvalidImageName` and never starts.

    The API server does not look at it, the kubelet does: registry, repository in lower case, `:tag`, `@digest`.
    A placeholder such as `${IMAGE}` is only a risk where something may fill it in before it is applied.
    """
    image = as_text(container.data["image"])
    why = find_image_error(image) if image else ""
    # Space around it is refused earlier, with the pod.
    if not why or image != image.strip():
        return
    gitops = container.pod.role.manifest.cluster.gitops
    if "$" in image and gitops != "argocd":
        if gitops != "flux":
            message = f"`{image}` names no image unless something fills it in before it is applied"
            yield Violation(container.data["image"], message, severity=WARNING)
        return
    yield Violation(container.data["image"], f"no image can be called `{image}`: {why}")
