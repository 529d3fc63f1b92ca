"""An image under a tag that is moved."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.images import MUTABLE_TAGS
from jobgen.k8s.objects import Container, as_text


@rule("container", WARNING, fields=("image",))
def moving_tag(container: Container) -> Iterator[Violation]:
    """An image under a tag that is moved, such as `latest`.

    A pod that is started again, or a worker that joins later, may get another image than its peers, and nobody can say
    afterwards what was trained. Name a version or a digest.
    """
    image = as_text(container.data["image"])
    tag = image.rpartition("/")[2].partition(":")[2]
    if tag in MUTABLE_TAGS and "@" not in image:
        yield Violation(
            container.data["image"], f"the tag `{tag}` is moved from image to image; name a version or a digest"
        )
