"""Mutable image tags."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.images import MUTABLE_TAGS, is_unresolved
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container


@rule("container", WARNING, fields=("image",))
def mutable_image_tag(container: Container) -> Iterator[Violation]:
    """An image with a mutable tag, such as `latest`.

    The registry can return a different image for the tag at any time. A restarted pod, or a worker that joins later,
    can run other code than its peers, and afterwards it is unknown which image trained the model.

    Pin a version or a digest.
    """
    image = as_text(container.data["image"])
    tag = image.rpartition("/")[2].partition(":")[2]
    if tag in MUTABLE_TAGS and "@" not in image and not is_unresolved(image):
        yield Violation(container.data["image"], f"`{tag}` is a mutable tag; pin a version or a digest")
