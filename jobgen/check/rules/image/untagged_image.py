"""An image without a tag."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.images import find_image_error
from jobgen.k8s.objects import Container, as_text


@rule("container", WARNING, fields=("image",))
def untagged_image(container: Container) -> Iterator[Violation]:
    """An image without a tag or a digest, which means `latest`.

    Where nothing else is said it is pulled anew at every start: a pod that is started again, or a worker that joins
    later, may get another image than its peers. Name a version or a digest.
    """
    image = as_text(container.data["image"])
    if image and ":" not in image.rpartition("/")[2] and "@" not in image and not find_image_error(image):
        yield Violation(
            container.data["image"], f"`{image}` has no tag, so it means `latest`; name a version or a digest"
        )
