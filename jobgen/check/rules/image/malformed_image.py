"""Malformed image names."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.images import find_image_error, is_go_package
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container


@rule("container", ERROR, fields=("image",))
def malformed_image(container: Container) -> Iterator[Violation]:
    """An image name that no container runtime accepts.

    The API server does not check the name, but the kubelet does: the pod stays in `InvalidImageName` and never starts.
    A placeholder such as `${IMAGE}` is only a warning unless Argo CD applies the job, because something can replace it
    first. A Go package, such as `ko://example.com/cmd`, is not reported: ko replaces it.

    Write `registry/repository:tag` or `registry/repository@digest`, with the repository in lower case.
    """
    image = as_text(container.data["image"])
    why = find_image_error(image) if image else ""
    # `image-name-whitespace` reports surrounding whitespace.
    if not why or image != image.strip() or is_go_package(image):
        return
    gitops = container.pod.manifest.cluster.gitops
    if "$" in image and gitops != "argocd":
        if gitops != "flux":
            message = f"`{image}` contains a placeholder; no image can be pulled unless something replaces it first"
            yield Violation(container.data["image"], message, severity=WARNING)
        return
    message = f"`{image}` is not a valid image name: {why}"
    scheme, separator, rest = image.partition("://")
    hint = f"; remove `{scheme}{separator}`" if separator else ""
    # Before an `@`, there can be a password.
    if separator and "@" not in rest and (also := find_image_error(rest)):
        hint += f"; also, {also}"
    yield Violation(container.data["image"], f"{message}{hint}")
