"""Roles of one job that run different versions of one image."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.images import ImageName, parse_image_name
from jobgen.k8s.objects import Manifest, as_text
from jobgen.model.data import Data

# Roles may well take different builds of one version.
_BUILDS = frozenset(("cpu", "gpu", "cuda", "rocm", "launcher", "worker", "master", "ps", "server", "scheduler"))


@rule("job", WARNING)
def mixed_image_versions(manifest: Manifest) -> Iterator[Violation]:
    """Roles of one job that run different versions of one image.

    Such roles talk to each other, and most frameworks fail or hang where their versions differ; usually one role was
    forgotten when the others were moved on. Name the same version in all.
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
    first: dict[str, tuple[ImageName, Data]] = {}
    for role, node in images:
        name = parse_image_name(as_text(node))
        other, where = first.setdefault(f"{name.domain}/{name.repository}", (name, node))
        if _version(name) != _version(other) and not _builds(name, other):
            message = (
                f"`{role.replica_type}` runs `{_shown(name)}` of an image that another role runs as `{_shown(other)}`"
            )
            yield Violation(node, f"{message}; name the same version", ((where, "the other role's image"),))


def _version(name: ImageName) -> tuple[str, str]:
    return ("", name.digest) if name.digest else (name.tag or "latest", "")


def _builds(name: ImageName, other: ImageName) -> bool:
    """Whether the two differ only in what they were built for."""
    return bool(_BUILDS & (name.name_tokens ^ other.name_tokens))


def _shown(name: ImageName) -> str:
    return name.digest[:19] if name.digest else name.tag or "latest"
