"""Find the containers of a job that have no image, so that its pods cannot start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jobgen.k8s.nodes import get_path
from jobgen.model.data import Node, locatable, value_of
from jobgen.model.finding import Problem
from jobgen.spec.kinds import Kind
from jobgen.spec.replicas import find_template

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
