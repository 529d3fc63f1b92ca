"""A tag that is moved, and nodes that do not look where to."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.images import parse_image_name
from jobgen.k8s.objects import Container, as_text


@rule("container", WARNING, fields=("imagePullPolicy",))
def stale_image(container: Container) -> Iterator[Violation]:
    """A tag that is moved together with `imagePullPolicy: IfNotPresent`: nodes may hold different images of it.

    A node that has an image under this tag keeps it, another pulls the newest, so the pods of one job may run different
    code. Name a version, or let it be pulled always.
    """
    policy = as_text(container.data["imagePullPolicy"])
    image = as_text(container.data.get("image"))
    if policy == "IfNotPresent" and image and parse_image_name(image).is_mutable:
        written = parse_image_name(image).tag
        tag = f"the tag `{written}` is moved" if written else "an image without a tag is `latest`, which is moved"
        message = f"{tag}, and with `{policy}` nodes keep what they have; name a version"
        yield Violation(container.data["imagePullPolicy"], message, ((container.data["image"], "the image"),))
