"""Different versions of an image in one job."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.images import ImageName, parse_image_name
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node

# Roles may use different builds of one version.
_BUILDS = frozenset(("cpu", "gpu", "cuda", "rocm", "launcher", "worker", "master", "ps", "server", "scheduler"))


@rule("job", WARNING)
def mixed_image_versions(manifest: Manifest) -> Iterator[Violation]:
    """Roles of one job that run different versions of the same image.

    The roles communicate, and most frameworks fail or hang when their versions differ. Usually one role was forgotten
    in an update.

    Use the same version in all roles.
    """
    if len(manifest.roles) < 2:
        return
    images = [
        (role, main.data["image"])
        for role in manifest.roles
        if (main := role.pod.main_container) and "image" in main.data
    ]
    if len({as_text(node) for _, node in images}) < 2:
        return
    first: dict[str, tuple[ImageName, Node]] = {}
    for role, node in images:
        name = parse_image_name(as_text(node))
        other, where = first.setdefault(f"{name.domain}/{name.repository}", (name, node))
        if _version(name) != _version(other) and not _are_builds(name, other):
            message = f"`{role.replica_type}` runs version `{_format(name)}` of an image that another role runs as"
            message += f" `{_format(other)}`; use the same version"
            yield Violation(node, message, ((where, "the image of the other role"),))


def _version(name: ImageName) -> tuple[str, str]:
    return ("", name.digest) if name.digest else (name.tag or "latest", "")


def _are_builds(name: ImageName, other: ImageName) -> bool:
    """Return True if the names differ in the hardware or role that the images are built for."""
    return bool(_BUILDS & (name.name_tokens ^ other.name_tokens))


def _format(name: ImageName) -> str:
    return name.digest[:19] if name.digest else name.tag or "latest"
