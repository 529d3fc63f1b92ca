"""Images without a tag."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.images import find_image_error, is_unresolved
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container


@rule("container", WARNING, fields=("image",))
def untagged_image(container: Container) -> Iterator[Violation]:
    """An image without a tag or digest, which means `latest`.

    Without a pull policy, Kubernetes pulls it at every start. A restarted pod, or a worker that joins later, can run a
    different image than its peers.

    Pin a version or a digest.
    """
    image = as_text(container.data["image"])
    if not image or is_unresolved(image):
        return
    if ":" not in image.rpartition("/")[2] and "@" not in image and not find_image_error(image):
        yield Violation(
            container.data["image"], f"`{image}` has no tag, so `latest` is used; pin a version or a digest"
        )
