"""Change rendered objects as overlays say: merges, JSON patches, and other names, tags and registries of images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from jobgen.k8s.images import find_image_error, parse_image_name
from jobgen.k8s.nodes import as_list, get_path
from jobgen.model.budget import Work, charge
from jobgen.model.data import Node, TracedList, locatable, override, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.path import Step
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import list_alternatives
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import Deletion, merge
from jobgen.spec.overlay import Environment, ImageChange, Patch
from jobgen.spec.replicas import find_template

_VALUES_OF_STEP = 4
"""So many values of patches are merged in a step of the budget."""


def apply_patches(
    made: Mapping[str, Any], patches: Sequence[Patch], problems: list[Problem], deletions: list[Deletion]
) -> Mapping[str, Any]:
    """Apply the parts of patches that change objects, in order."""
    for patch in patches:
        charge(Work.PATCHES, patch.weight // _VALUES_OF_STEP)
        if patch.manifest is not None:
            made = merge(made, patch.manifest, deletions)
        if patch.json_patch is not None:
            # Imported late: most overlays have none.
            from jobgen.spec import json_patch

            failed: list[Problem] = []
            made = json_patch.apply_json_patch(made, patch.json_patch, failed)
            problems += map(_explain_path, failed)
    return made


_FIELDS_OF_JOBS = frozenset(
    "args command env framework image mpi platform pytorch queue replicas resources roles shm sidecars volumes".split()
)


def _explain_path(failed: Problem) -> Problem:
    """Say that the path of a JSON patch is not that of a job as it is written."""
    path = value_of(failed.node)
    steps = path.split("/", 3) if isinstance(path, str) else []
    if steps[1:2] != ["spec"] or steps[2:3] == [] or steps[2] not in _FIELDS_OF_JOBS:
        return failed
    missing = f"/spec/{steps[2]}"
    if failed.about != missing:
        return failed
    message = Sentence("`{}` does not exist; `jsonPatch` changes the rendered object; ", missing)
    return failed._replace(sentence=message + f"write its path, or set `{steps[2]}` with `merge`")


def apply_images(
    made: Mapping[str, Any], environment: Environment, kinds: Sequence[Kind], used: list[Deletion], *, is_spec: bool
) -> Mapping[str, Any]:
    """Rewrite the images of an object as the environment says."""
    images = environment.images_for(is_spec=is_spec)
    return rewrite_images(made, images, kinds, used) if images else made


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
                deciding = next(key for key in ("newTag", "digest", "newName", "newRegistry") if key in change.fields)
                source = with_value(change.fields[deciding], changed)
                image = image if changed == text else override(source, image)
        return image

    return _rewrite_object(made, kinds, rewrite)


def list_images(made: Mapping[str, Node], kinds: Sequence[Kind]) -> list[str]:
    """Return the names of all images that can be changed."""
    names: list[str] = []

    def note(image: Node) -> Node:
        names.append(str(value_of(image)))
        return image

    _rewrite_object(made, kinds, note)
    return names


def _rewrite_object(
    made: Mapping[str, Node], kinds: Sequence[Kind], rewrite: Callable[[Node], Node]
) -> Mapping[str, Any]:
    """An object with other images, also where it has the image of a container but no pod template."""
    found: Mapping[str, Any] = _rewrite_tree(made, rewrite)
    api_version, name = str(value_of(made.get("apiVersion"))), str(value_of(made.get("kind")))
    for kind in kinds:
        if kind.template is not None and kind.describes(api_version, name) and "image" in kind.template.container:
            found = _rewrite_at(found, kind.template.container["image"], rewrite)
    return found


def _rewrite_tree(node: Any, rewrite: Callable[[Node], Node]) -> Any:
    """A tree with other images; parts without any are shared with the original."""
    if isinstance(node, dict):
        children: dict[str, Any] = {}
        for key, child in node.items():
            children[key] = changed = _rewrite_tree(child, rewrite)
            if key in _LISTS and isinstance(changed, list):
                children[key] = _replace_items(changed, [_rewrite_at(item, ("image",), rewrite) for item in changed])
            elif key in _CONTAINERS:
                children[key] = _rewrite_at(changed, ("image",), rewrite)
        return children if any(children[key] is not node[key] for key in node) else node
    return _replace_items(node, [_rewrite_tree(item, rewrite) for item in node]) if isinstance(node, list) else node


def _rewrite_at(node: Any, path: tuple[Step, ...], rewrite: Callable[[Node], Node]) -> Any:
    """A mapping with another image at a path; the same one if there is none, or if it stays."""
    if not isinstance(node, dict) or str(path[0]) not in node:
        return node
    step = str(path[0])
    child = node[step]
    changed = _rewrite_at(child, path[1:], rewrite) if len(path) > 1 else rewrite(child)
    return node if changed is child else {**node, step: changed}


def _replace_items(found: Any, items: list[Any]) -> list[Any]:
    """A list like one that was found, with other items; the same one if they are the same."""
    if all(new is old for new, old in zip(items, found, strict=True)):
        return found  # type: ignore[no-any-return]
    if type(found) is not TracedList:
        return items
    copied = TracedList(items, found.location, found.layer, found.overridden)
    copied.item_locations = found.item_locations
    return copied


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
    host, slash, rest = registry.partition("/")
    return f"{_DEFAULT_REGISTRY}{slash}{rest}" if host == "index.docker.io" else registry


def find_missing_images(made: Mapping[str, Node], kinds: Iterable[Kind]) -> list[Problem]:
    """Report containers of a job without an image. The pods of some kinds get theirs from a runtime."""
    api_version, name = str(value_of(made.get("apiVersion"))), str(value_of(made.get("kind")))
    kind = next((kind for kind in kinds if kind.describes(api_version, name)), None)
    if kind is None:
        return []
    problems: list[Problem] = []
    for item, field in product(kind.list_items(made), ("containers", "initContainers")):
        containers = get_path(find_template(item.data, kind.replicas), "spec", field)
        listed = [*containers.values()] if isinstance(containers, dict) else as_list(containers)
        for index, container in enumerate(listed):
            if isinstance(container, dict) and not value_of(container.get("image")):
                own = container.get("name")
                place = f"`{field}[{index}]` of role `{value_of(item.key)}`"
                what = f"container `{value_of(own)}`" if value_of(own) else place
                message = Sentence("{} requires `image`; set it", what)
                if value_of(own) and "command" not in container:
                    message += _name_others(listed)
                problems.append(Problem("missing-pod-field", message, locatable(own, container), category="pod"))
    return problems


_MOST_NAMED = 4


def _name_others(containers: Sequence[Node]) -> str:
    """Name the containers with an image: one that a layer only adds to has its image from another, under its name."""
    complete = [each for each in containers if isinstance(each, dict) and value_of(each.get("image"))]
    names = list_alternatives(f"`{value_of(each.get('name'))}`" for each in complete[:_MOST_NAMED])
    return f", or write {names} for its name" if names else ""
