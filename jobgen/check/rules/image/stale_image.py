"""Mutable tags that nodes do not pull again."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.images import is_unresolved, parse_image_name
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container


@rule("container", WARNING, fields=("imagePullPolicy",))
def stale_image(container: Container) -> Iterator[Violation]:
    """A mutable tag with `imagePullPolicy: IfNotPresent`.

    A node that already has an image for the tag keeps it, while another node pulls the newest one. The pods of one job
    can run different code.

    Pin a version or a digest, or set `imagePullPolicy: Always`.
    """
    policy = as_text(container.data["imagePullPolicy"])
    image = as_text(container.data.get("image"))
    if policy != "IfNotPresent" or not image or is_unresolved(image):
        return
    if parse_image_name(image).is_mutable:
        tag = parse_image_name(image).tag
        subject = f"`{tag}` is a mutable tag" if tag else "an image without a tag uses the mutable tag `latest`"
        message = f"{subject}, but with `{policy}` a node keeps the image it already has; pin a version"
        yield Violation(container.data["imagePullPolicy"], message, ((container.data["image"], "the image"),))
