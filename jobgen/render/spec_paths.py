"""Paths into a job spec, as people write it: where such a value is after its layer was normalized."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobgen.model.data import Node, value_of
from jobgen.model.path import NamedItem, Step
from jobgen.spec.merge import LIST_KEYS

_SIDES = ("limits", "requests")
_PARTS_OF_RESOURCES = (*_SIDES, "claims")
_MAIN_CONTAINER: tuple[Step, ...] = ("spec", "containers", 0)
_PARTS_OF_CONTAINER = frozenset("image imagePullPolicy command args workingDir envFrom ports resources".split())
_PARTS_OF_POD = frozenset("nodeSelector tolerations affinity imagePullSecrets".split())
_KEYS = {**LIST_KEYS, "sidecars": ("name",)}


def expand_path(path: tuple[Step, ...], written: Node, gpu_resource: str) -> list[tuple[Step, ...]]:
    """The paths in the expanded fields of a role for a path in its fields; `written` are those of the job itself."""
    named = _name_items(path, written)
    expand = _EXPANSIONS.get(str(path[0])) if path else None
    return expand(named, gpu_resource) if expand else [named]


def shorten_path(path: tuple[Step, ...], gpu_resource: str) -> tuple[Step, ...]:
    """The short form of a path in the expanded fields: `resources.gpu` for both of its sides."""
    match path:
        case (*container, "resources", side, name) if side in _SIDES and "podTemplate" not in container:
            return (*container, "resources", "gpu" if name == gpu_resource else name)
        case _:
            return path


def find_template_path(path: tuple[Step, ...]) -> tuple[Step, ...]:
    """The path in a pod template for a path in the expanded fields of a role; empty if it has none of its own."""
    match path:
        case ("env", str() as name, *rest):
            return (*_MAIN_CONTAINER, "env", NamedItem("name", name), *(rest or ["value"]))
        case ("serviceAccount",) | ("serviceAccount", "name"):
            return ("spec", "serviceAccountName")
        case (field, *_) if field in _PARTS_OF_CONTAINER:
            return (*_MAIN_CONTAINER, *path)
        case (field, *_) if field in _PARTS_OF_POD:
            return ("spec", *path)
        case (field, *_) if field in ("labels", "annotations"):
            return ("metadata", *path)
        case _:
            return ()


def _name_items(path: tuple[Step, ...], written: Node) -> tuple[Step, ...]:
    """The path with names for items of lists that merge by key, as their numbers change with the layers."""
    steps: list[Step] = []
    node: Any = written
    for step in path:
        if isinstance(step, int) and isinstance(node, list) and step < len(node):
            node = node[step]
            steps.append(_name_item(node, _KEYS.get(str(steps[-1]), ()) if steps else ()) or step)
        else:
            node = node.get(str(step)) if isinstance(node, dict) else None
            steps.append(step)
    return tuple(steps)


def _name_item(item: Node, keys: tuple[str, ...]) -> NamedItem | None:
    """The name of an item in a list that merges by key; an item that is a text is its name."""
    if not keys:
        return None
    key = keys[0] if isinstance(item, dict) else "name"
    name = value_of(item.get(key) if isinstance(item, dict) else item)
    return NamedItem(key, str(name)) if isinstance(name, (str, int)) else None


def _expand_env(path: tuple[Step, ...], _: str) -> list[tuple[Step, ...]]:
    """`env` is a map after normalization, whose values are texts or `{valueFrom: …}`."""
    field, *rest = path
    if not rest:
        return [path]
    name = rest[0].value if isinstance(rest[0], NamedItem) else str(rest[0])
    below = tuple(rest[1:])
    if below in (("value",), ("name",)):
        return [(field, name)]
    return [(field, name, *(("valueFrom", *below) if below and below[0] != "valueFrom" else below))]


def _expand_ports(path: tuple[Step, ...], _: str) -> list[tuple[Step, ...]]:
    """`ports` is a list after normalization."""
    match path:
        case (field, str() as name):
            return [(field, NamedItem("name", name), "containerPort")]
        case _:
            return [path]


def _expand_resources(path: tuple[Step, ...], gpu_resource: str) -> list[tuple[Step, ...]]:
    """An amount outside of `limits` and `requests` counts for both."""
    field, *rest = path
    if rest and rest[0] not in _PARTS_OF_RESOURCES:
        return [(field, side, *_resource_name(rest, gpu_resource)) for side in _SIDES]
    return [(field, *rest[:1], *_resource_name(rest[1:], gpu_resource))]


def _resource_name(steps: list[Step], gpu_resource: str) -> list[Step]:
    return [gpu_resource, *steps[1:]] if steps and steps[0] == "gpu" else steps


def _expand_containers(path: tuple[Step, ...], gpu_resource: str) -> list[tuple[Step, ...]]:
    """Containers are a map by name after normalization, each with the short forms of a role."""
    match path:
        case (field, container, *rest):
            name = container.value if isinstance(container, NamedItem) else str(container)
            below = () if rest == ["name"] else tuple(rest)
            return [(field, name, *steps) for steps in expand_path(below, None, gpu_resource)]
        case _:
            return [path]


_EXPANSIONS: dict[str, Callable[[tuple[Step, ...], str], list[tuple[Step, ...]]]] = {
    "env": _expand_env,
    "ports": _expand_ports,
    "resources": _expand_resources,
    "initContainers": _expand_containers,
    "sidecars": _expand_containers,
}
