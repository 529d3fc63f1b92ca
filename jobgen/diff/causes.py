"""Find the line that wrote a changed value, on either side."""

from __future__ import annotations

from collections.abc import Iterable

from jobgen.diff.snapshot import Snapshot
from jobgen.k8s.compare import FieldPath
from jobgen.model.data import Location, Node, TracedKey, TracedList, TracedScalar, location_of, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import NamedItem, Step
from jobgen.render.environment import Rendered


class Cause(NamedTuple):
    """The location of a value, and the layer that wrote it."""

    location: Location
    layer: str


def find_causes(snapshot: Snapshot, rendered: Rendered, paths: Iterable[FieldPath]) -> dict[FieldPath, Cause]:
    """The causes of the values at these paths of an object; paths without a value are left out."""
    traced = snapshot.trace(rendered).select(rendered.companion)
    found = {path: _find_cause(traced, path, Cause(rendered.location, "")) for path in paths}
    return {path: cause for path, cause in found.items() if cause}


def _find_cause(node: Node, path: FieldPath, parent: Cause) -> Cause | None:
    """The cause of the node, or of the nearest parent that has a location."""
    key: str | None = None
    for step in path:
        if isinstance(node, (TracedList, TracedScalar)):
            parent = Cause(node.location, node.layer)
        key, node = _follow(node, step)
        if node is None:
            return None
        if isinstance(key, TracedKey):
            parent = Cause(key.location, key.layer)
    if isinstance(node, (TracedScalar, TracedList)):
        return Cause(node.location, node.layer)
    # A mapping that the renderer built has no location of its own, but its content has.
    inside = None if isinstance(key, TracedKey) else location_of(node)
    return Cause(inside, parent.layer) if inside else parent


def _follow(node: Node, step: Step) -> tuple[str | None, Node]:
    """The child at a step, and the key that it is written at; an item of a list starts at its first key."""
    if isinstance(node, dict):
        return next(((key, child) for key, child in node.items() if key == step), (None, None))
    for index, item in enumerate(node if isinstance(node, list) else ()):
        if index == step or (isinstance(step, NamedItem) and _matches(item, step)):
            return _first_key(item), item
    return None, None


def _matches(item: Node, step: NamedItem) -> bool:
    return isinstance(item, dict) and str(value_of(item.get(step.field))) == step.value


def _first_key(item: Node) -> str | None:
    return next((key for key in item if isinstance(key, TracedKey)), None) if isinstance(item, dict) else None
