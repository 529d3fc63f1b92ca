"""Change rendered objects as overlays say: merges, JSON patches, and other names, tags and registries of images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.k8s.images import find_image_error, parse_image_name
from jobgen.k8s.nodes import get_path
from jobgen.model.data import Node, TracedList, locatable, override, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.path import Step
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import Deletion, merge
from jobgen.spec.overlay import Environment, ImageChange, Patch
from jobgen.spec.replicas import find_template


def apply_patches(
    made: Mapping[str, Any], patches: Sequence[Patch], problems: list[Problem], deletions: list[Deletion]
) -> Mapping[str, Any]:
    """Apply the parts of patches that change objects, in order."""
    for patch in patches:
        if patch.manifest is not None:
            made = merge(made, patch.manifest, deletions)
        if patch.json_patch is not None:
            # Imported late: most overlays have none.
            from jobgen.spec import json_patch

            made = json_patch.apply_json_patch(made, patch.json_patch, problems)
    return made


def apply_images(
    made: Mapping[str, Any],
    environment: Environment,
    kinds: Sequence[Kind],
    deletions: list[Deletion],
    *,
    is_spec: bool,
) -> Mapping[str, Any]:
    """Rewrite the images of an object as the environment says."""
    images = environment.images_for(is_spec=is_spec)
    if not images:
        return made

    return rewrite_images(made, images, kinds, deletions)


IMAGES = "images"
"""The key of the marker that an entry of `images` took effect."""

_LISTS = frozenset(("containers", "initContainers", "ephemeralContainers"))
# A container that an operator adds: the autoscaler of KubeRay.
_CONTAINERS = frozenset(("autoscalerOptions",))
_DEFAULT_REGISTRY = "docker.io"
_LIBRARY = "library/"


def rewrite_images(
    made: Mapping[str, Node], changes: Sequence[ImageChange], kinds: Sequence[Kind], used: list[Deletion]
) -> Mapping[str, Any]:
    """Apply the changes in order; each that matches an image is noted in `used`."""

    def rewrite(image: Node) -> Node:
        for change in changes:
            text = value_of(image)
            changed = _change_image(text, change) if isinstance(text, str) else None
            if changed is not None:
                used.append(Deletion(change.fields, IMAGES, found=True))
                image = image if changed == text else override(with_value(_source_of(change), changed), image)
        return image

    found: Any = _rewrite_tree(made, rewrite)
    for path in _list_image_paths(made, kinds):
        found = _rewrite_at(found, path, rewrite)
    return found  # type: ignore[no-any-return]


def list_images(made: Mapping[str, Node], kinds: Sequence[Kind]) -> Iterator[str]:
    """Yield the names of all images that can be changed."""
    names: list[str] = []

    def note(image: Node) -> Node:
        names.append(str(value_of(image)))
        return image

    _rewrite_tree(made, note)
    for path in _list_image_paths(made, kinds):
        _rewrite_at(made, path, note)
    yield from names


def _list_image_paths(made: Mapping[str, Node], kinds: Sequence[Kind]) -> Iterator[tuple[Step, ...]]:
    """Yield where an object has the image of a container but no pod template."""
    api_version, name = str(value_of(made.get("apiVersion"))), str(value_of(made.get("kind")))
    for kind in kinds:
        if kind.template is not None and kind.describes(api_version, name) and "image" in kind.template.container:
            yield kind.template.container["image"]


def _rewrite_tree(node: Any, rewrite: Callable[[Node], Node]) -> Any:
    """A tree with other images; parts without any are shared with the original."""
    if isinstance(node, dict):
        children = {key: _rewrite_child(key, child, rewrite) for key, child in node.items()}
        return children if any(children[key] is not node[key] for key in node) else node
    if isinstance(node, list):
        items = [_rewrite_tree(item, rewrite) for item in node]
        return _like_list(node, items) if any(a is not b for a, b in zip(items, node, strict=True)) else node
    return node


def _rewrite_child(key: str, child: Any, rewrite: Callable[[Node], Node]) -> Any:
    changed = _rewrite_tree(child, rewrite) if isinstance(child, (dict, list)) else child
    if key in _LISTS and isinstance(changed, list):
        items = [_rewrite_at(item, ("image",), rewrite) for item in changed]
        return _like_list(changed, items) if any(a is not b for a, b in zip(items, changed, strict=True)) else changed
    return _rewrite_at(changed, ("image",), rewrite) if key in _CONTAINERS else changed


def _rewrite_at(node: Any, path: tuple[Step, ...], rewrite: Callable[[Node], Node]) -> Any:
    """A mapping with another image at a path; the same one if there is none, or if it stays."""
    if not isinstance(node, dict) or str(path[0]) not in node:
        return node
    step = str(path[0])
    child = node[step]
    changed = _rewrite_at(child, path[1:], rewrite) if len(path) > 1 else rewrite(child)
    return node if changed is child else {**node, step: changed}


def _like_list(pattern: Any, items: list[Any]) -> list[Any]:
    if type(pattern) is not TracedList:
        return items
    copied = TracedList(items, pattern.location, pattern.layer, pattern.overridden)
    copied.item_locations = pattern.item_locations
    return copied


def _source_of(change: ImageChange) -> Node:
    """The value of an entry that decides the new name of the image."""
    found: Node = next(
        change.fields[key] for key in ("newTag", "digest", "newName", "newRegistry") if key in change.fields
    )
    return found


def _change_image(image: str, change: ImageChange) -> str | None:
    """The new name of an image; None if the entry does not match it."""
    fields = change.fields
    if "registry" in fields:
        return _change_registry(image, str(value_of(fields["registry"])), str(value_of(fields["newRegistry"])))
    repository, suffix = split_image(image)
    if repository != value_of(fields["name"]):
        return None
    if "newTag" in fields:
        suffix = f":{value_of(fields['newTag'])}"
    elif "digest" in fields:
        suffix = f"@{value_of(fields['digest'])}"
    return f"{value_of(fields.get('newName', repository))}{suffix}"


def split_image(image: str) -> tuple[str, str]:
    """Split the name of an image from its tag and digest."""
    rest, at, digest = image.partition("@")
    folder, slash, last = rest.rpartition("/")
    name, colon, tag = last.partition(":")
    return f"{folder}{slash}{name}", f"{colon}{tag}{at}{digest}"


def _change_registry(image: str, registry: str, new: str) -> str | None:
    if find_image_error(image):
        return None
    parts = parse_image_name(image)
    domain = _canonical_registry(parts.domain or _DEFAULT_REGISTRY)
    is_library = domain == _DEFAULT_REGISTRY and "/" not in parts.repository
    full = f"{domain}/{_LIBRARY if is_library else ''}{parts.repository}"
    start = f"{_canonical_registry(registry)}/"
    return f"{new}/{full.removeprefix(start)}{split_image(image)[1]}" if full.startswith(start) else None


def _canonical_registry(registry: str) -> str:
    return _DEFAULT_REGISTRY + registry.removeprefix("index.docker.io") if _is_docker(registry) else registry


def _is_docker(registry: str) -> bool:
    return registry == "index.docker.io" or registry.startswith("index.docker.io/")


_CONTAINER_FIELDS = ("containers", "initContainers")


def find_missing_images(made: Mapping[str, Node], kinds: Iterable[Kind]) -> list[Problem]:
    """Report containers of a job without an image. The pods of some kinds get theirs from a runtime."""
    api_version, name = str(value_of(made.get("apiVersion"))), str(value_of(made.get("kind")))
    kind = next((kind for kind in kinds if kind.describes(api_version, name)), None)
    if kind is None:
        return []
    pods = [(each.key, get_path(find_template(each.data, kind.replicas), "spec")) for each in kind.list_items(made)]
    return [
        _report(role, field, index, each)
        for role, pod in pods
        for field in _CONTAINER_FIELDS
        for index, each in enumerate(_list_containers(get_path(pod, field)))
        if isinstance(each, dict) and not value_of(each.get("image"))
    ]


def _list_containers(tree: Node) -> Sequence[Node]:
    """The values of a mapping, or the items of a list."""
    return list(tree.values()) if isinstance(tree, dict) else tree if isinstance(tree, list) else ()


def _report(role: Node, field: str, index: int, container: Mapping[str, Node]) -> Problem:
    name = container.get("name")
    what = f"container `{value_of(name)}`" if value_of(name) else f"`{field}[{index}]` of role `{value_of(role)}`"
    node = locatable(name, container)
    return Problem("missing-pod-field", f"{what} requires `image`; set it", node, category="pod")
