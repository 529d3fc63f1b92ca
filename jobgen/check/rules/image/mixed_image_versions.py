"""Different versions of an image in one job."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.images import ImageName, parse_image_name
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.workloads import RAY_CLUSTERS
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern

# Roles may use different builds of one version.
_BUILDS = frozenset(("cpu", "gpu", "cuda", "rocm", "launcher", "worker", "master", "ps", "server", "scheduler"))
# The images that the project Ray publishes: their tags are versions of Ray, and may name a version of Python.
_RAY = ("rayproject/ray", "rayproject/ray-ml", "rayproject/ray-llm")
_RAY_TAG = lazy_pattern(r"([0-9]+\.[0-9]+\.[0-9]+)(?:-(py[0-9]+))?(?![.\w])")


@rule("manifest", WARNING)
def mixed_image_versions(manifest: Manifest) -> Iterator[Violation]:
    """Roles of one job that run different versions of the same image.

    The roles communicate, and most frameworks fail or hang when their versions differ. Usually one role was forgotten
    in an update. Ray refuses workers that have another version of Ray or Python than the head: that is an error for
    the images of the project Ray, whose tags are versions. A `rayVersion` other than that of the head is a warning:
    KubeRay decides by it which features Ray has.

    Use the same version in all roles.
    """
    refused = list(_check_ray(manifest)) if manifest.group == "ray.io" else []
    yield from refused
    if len(manifest.roles) < 2 or any(each.severity is ERROR for each in refused):
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


def _check_ray(manifest: Manifest) -> Iterator[Violation]:
    """Check the images of a Ray cluster, as far as they are those of the project Ray."""
    path = RAY_CLUSTERS.get(manifest.kind_name, ("spec", "jobTemplate", "rayClusterSpec"))
    cluster = as_mapping(get_path(manifest.object, *path))
    head, *workers = (cluster.get("headGroupSpec"), *as_list(cluster.get("workerGroupSpecs")))
    image, main = _find_ray_version(head)
    declared = as_text(cluster.get("rayVersion")).strip().removeprefix("v")
    if main and declared and declared != main[0] and _RAY_TAG.fullmatch(declared):
        message = f"`rayVersion` is `{declared}`, but the image of the head has Ray {main[0]}; use the same version"
        yield Violation(cluster["rayVersion"], message, ((image, "the image of the head"),))
    for group in workers:
        node, found = _find_ray_version(group)
        if not main or not found or (found[0] == main[0] and (not found[1] or not main[1] or found[1] == main[1])):
            continue
        name = as_text(as_mapping(group).get("groupName"))
        own, other = ("-".join(filter(None, each)) for each in (found, main))
        message = f"group `{name}` runs version `{own}` of Ray, but the head runs `{other}`, so the head refuses its"
        related = ((image, "the image of the head"),)
        yield Violation(node, f"{message} workers for a version mismatch; use the same version", related, ERROR)


def _find_ray_version(group: Node) -> tuple[Node, tuple[str, ...]]:
    """Return the image of a group's Ray container, and its versions of Ray and Python; () if they are not known."""
    containers = as_list(get_path(as_mapping(group), "template", "spec", "containers"))
    node = as_mapping(containers[0]).get("image") if containers else None
    name = parse_image_name(as_text(node))
    match = _RAY_TAG.match(name.tag) if name.repository in _RAY and not name.digest else None
    return node, (match[1], match[2] or "") if match else ()


def _version(name: ImageName) -> tuple[str, str]:
    return ("", name.digest) if name.digest else (name.tag or "latest", "")


def _are_builds(name: ImageName, other: ImageName) -> bool:
    """Return True if the names differ in the hardware or role that the images are built for."""
    return bool(_BUILDS & (name.name_tokens ^ other.name_tokens))


def _format(name: ImageName) -> str:
    return name.digest[:19] if name.digest else name.tag or "latest"
